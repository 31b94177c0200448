// calls.*: a target that answers operator calls by their rules, and others with one mistake.
#include <gtest/gtest.h>

#include "kernels/cpu/naive/cpu_naive.h"
#include "model/calls/attention_rules.h"
#include "model/calls/gqa_rules.h"
#include "model/scenario_json.h"
#include "properties/calls/call_changes.h"
#include "properties/calls/call_of.h"
#include "properties/catalog.h"
#include "properties/finding.h"
#include "properties/search.h"

namespace kvcheck::properties {
namespace {

using kernels::Answer;
using kernels::CallResult;
using kernels::OperatorCall;

enum class Mistake {
  none,
  takes_any_count,      // A list of lengths with one element too many.
  refuses_columns,      // seqlens_k of shape (B, 1).
  wraps_lengths,        // seqlens_k + 1 in 32 bits.
  dies_of_no_total,     // A division by total_sequence_length.
  reads_column_as_row,  // Another output for (B, 1).
  takes_any_nonpad,
  takes_two  // Too many lengths, and no total.
};

class Caller final : public kernels::Target {
 public:
  explicit Caller(Mistake mistake)
      : mistake_(mistake), inner_(kernels::make_cpu_naive()), can_(inner_->capabilities()) {
    can_.features.insert("operator_calls");
  }
  const kernels::Capabilities& capabilities() const override { return can_; }
  Answer<std::unique_ptr<kernels::Session>> open(const kernels::SessionConfig& config) override {
    return inner_->open(config);
  }
  Answer<CallResult> call(const OperatorCall& call) override {
    std::vector<std::string> rules;
    if (call.op == "gqa") {
      for (const auto& one : model::check(gqa_call_info(call))) {
        rules.emplace_back(to_string(one.rule));
      }
    } else {
      for (const auto& one :
           model::check(attention_call_info(call), model::Strictness::onnxruntime_cpu)) {
        rules.emplace_back(to_string(one.rule));
      }
    }
    const auto* lengths = call.find("seqlens_k");
    const bool column = lengths != nullptr && lengths->tensor.shape.size() == 2 &&
                        lengths->tensor.shape[1] == 1 && lengths->tensor.shape[0] > 1;
    if (mistake_ == Mistake::takes_any_count) std::erase(rules, "seqlens_count");
    if (mistake_ == Mistake::takes_two) {
      std::erase(rules, "seqlens_count");
      std::erase(rules, "total_positive");
    }
    if (mistake_ == Mistake::takes_any_nonpad) std::erase(rules, "nonpad_range");
    if (mistake_ == Mistake::refuses_columns && column) rules.emplace_back("seqlens_shape");
    if (mistake_ == Mistake::wraps_lengths && call.op == "gqa") {
      for (const auto length : gqa_call_info(call).seqlens_k_values) {
        if (length == INT32_MAX) std::erase(rules, "seqlens_range");
      }
    }
    if (mistake_ == Mistake::dies_of_no_total && !rules.empty() && rules[0] == "total_positive") {
      return kernels::Failure{kernels::Failure::Kind::crash, "killed by signal 8"};
    }
    if (!rules.empty()) return kernels::Refusal{rules.front()};
    CallResult result;
    for (const auto& name : call.outputs) {
      result.outputs.push_back({name, kernels::Tensor::zeros(kernels::ElementType::f32, {1})});
      if (mistake_ == Mistake::reads_column_as_row && column) {
        result.outputs.back().tensor.bytes[0] = std::byte{1};
      }
    }
    return result;
  }

 private:
  Mistake mistake_;
  std::unique_ptr<kernels::Target> inner_;
  kernels::Capabilities can_;
};

model::Scenario decode(const char* change) {
  auto scenario = model::parse_scenario(R"({"schema":1,"operator":"gqa","batch":2,"query_heads":2,
      "head_size":16,"cache":{"capacity":8},"steps":[{"append":4},{"append":1}]})");
  scenario.call_change = change;
  return scenario;
}

Judgement judged(Mistake mistake, const char* property, const model::Scenario& scenario) {
  Caller target(mistake);
  const Property& one = *find_property(property);
  EXPECT_EQ(one.inapplicable(scenario, target.capabilities()), "");
  return judge_fresh(target, scenario, one);
}

struct Example {
  Mistake mistake;
  const char* property;
  const char* change;
  Kind kind;
  const char* rule;
};

void PrintTo(const Example& example, std::ostream* out) {
  *out << example.property << " " << example.change;
}

class OperatorCalls : public testing::TestWithParam<Example> {};

TEST_P(OperatorCalls, SeesTheMistakeAndNoneInAHealthyTarget) {
  const Example& e = GetParam();
  const auto scenario = decode(e.change);
  const Judgement found = judged(e.mistake, e.property, scenario);
  EXPECT_EQ(found.verdict, Verdict::failed) << found.text;
  EXPECT_EQ(found.kind, e.kind) << found.text;
  EXPECT_EQ(found.rule, e.rule);
  EXPECT_EQ(judged(Mistake::none, e.property, scenario).verdict, Verdict::passed);
}

INSTANTIATE_TEST_SUITE_P(
    Mistakes, OperatorCalls,
    testing::Values(Example{Mistake::takes_any_count, "calls.refused", "seqlens_k.dim[0]+1",
                            Kind::wrongly_accepted, "seqlens_count"},
                    Example{Mistake::dies_of_no_total, "calls.refused",
                            "total_sequence_length[0]=0", Kind::crash, "total_positive"},
                    Example{Mistake::refuses_columns, "calls.accepted", "seqlens_k as a column",
                            Kind::wrongly_refused, "seqlens_k as a column"},
                    Example{Mistake::reads_column_as_row, "calls.accepted", "seqlens_k as a column",
                            Kind::influence, "seqlens_k as a column"},
                    Example{Mistake::wraps_lengths, "calls.extreme_lengths",
                            "seqlens_k[last]=2^31-1", Kind::wrongly_accepted, "seqlens_range"}));

TEST(OperatorCalls, AreSkippedWhereTheRulesLeaveThemOpenOrTheChangeIsGone) {
  auto scenario = model::parse_scenario(R"({"schema":1,"operator":"attention","opset":23,
      "head_size":4,"steps":[{"append":3},{"append":2,"queries":1}]})");
  scenario.call_change = "scale=0";
  EXPECT_EQ(judged(Mistake::none, "calls.accepted", scenario).verdict, Verdict::skipped);
  EXPECT_EQ(judged(Mistake::none, "calls.refused", decode("no such change")).verdict,
            Verdict::skipped);
}

TEST(OperatorCalls, FindingsOfTwoRulesAreTwoFindings) {
  Caller target(Mistake::takes_two);
  SearchOptions options;
  options.properties = {find_property("calls.refused")};
  options.phases = {Phase::named};
  options.deadline = Clock::now() + std::chrono::minutes(5);
  options.named = {decode("seqlens_k.dim[0]+1"), decode("total_sequence_length[0]=0"),
                   decode("seqlens_k.dim[0]+1")};
  RunRecord record;
  Search(target, options, record, Clock::now(), {}).run();
  ASSERT_EQ(record.findings.size(), 2u);
  EXPECT_EQ(record.findings[0].rule, "seqlens_count");
  EXPECT_EQ(record.findings[0].occurrences, 2);
  EXPECT_EQ(record.findings[1].rule, "total_positive");
  for (const FindingRecord& finding : record.findings) {
    EXPECT_EQ(judged(Mistake::takes_two, "calls.refused", finding.minimal).rule, finding.rule);
  }
  // A search that goes on knows them by their rules.
  Search(target, options, record, Clock::now(), {}).run();
  EXPECT_EQ(record.findings.size(), 2u);
}

TEST(OperatorCalls, ShrinkingKeepsTheRule) {
  Caller target(Mistake::takes_two);
  const Property& property = *find_property("calls.refused");
  const auto fails =
      still_fails_with(target, property, {Kind::wrongly_accepted, "seqlens_count"}, 1);
  EXPECT_TRUE(fails(decode("seqlens_k.dim[0]+1")));
  EXPECT_FALSE(fails(decode("total_sequence_length[0]=0")));
}

TEST(OperatorCalls, HoldForAHealthyTargetUnderEveryChange) {
  Caller target(Mistake::none);
  for (const char* text :
       {R"({"schema":1,"operator":"gqa","batch":2,"query_heads":2,"head_size":16,
            "cache":{"capacity":8},"steps":[{"append":4},{"append":1}]})",
        R"({"schema":1,"operator":"attention","opset":24,"nonpad_kv_seqlen":true,"head_size":4,
            "cache":{"capacity":8},"steps":[{"append":3},{"append":2,"queries":1}]})"}) {
    auto scenario = model::parse_scenario(text);
    int judged = 0;
    for (const ChangedCall& changed :
         changed_calls(std::get<OperatorCall>(operator_call_of(scenario)))) {
      scenario.call_change = changed.name;
      for (const char* id : {"calls.refused", "calls.accepted", "calls.extreme_lengths"}) {
        const Property& property = *find_property(id);
        if (!property.inapplicable(scenario, target.capabilities()).empty()) continue;
        const Judgement found = judge_fresh(target, scenario, property);
        EXPECT_NE(found.verdict, Verdict::failed) << changed.name << ": " << found.text;
        judged += found.verdict == Verdict::passed ? 1 : 0;
      }
    }
    EXPECT_GT(judged, 60);
  }
  auto nonpad = model::parse_scenario(R"({"schema":1,"operator":"attention","opset":24,
      "nonpad_kv_seqlen":true,"head_size":4,"cache":{"capacity":8},"steps":[{"append":3}]})");
  nonpad.call_change = "nonpad_kv_seqlen[0]=rows+1";
  EXPECT_EQ(judged(Mistake::takes_any_nonpad, "calls.refused", nonpad).kind,
            Kind::wrongly_accepted);
}

}  // namespace
}  // namespace kvcheck::properties
