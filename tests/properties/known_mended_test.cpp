// Each kind of explanation: it takes what the entry says for known, and not another fault that a
// target has besides.
#include "properties/known_mended.h"

#include <functional>
#include <limits>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "kernels/cpu/naive/cpu_naive.h"
#include "model/scenario_json.h"
#include "properties/case_judge.h"
#include "properties/known_findings.h"
#include "tests/properties/forwarding_session.h"

namespace kvcheck::properties {
namespace {

using kernels::Answer;
using kernels::StepRequest;
using kernels::StepResult;
using kernels::Tensor;

constexpr float kLowest = std::numeric_limits<float>::lowest();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Another fault, put into the answer of every step.
using Spoil = std::function<void(const StepRequest&, StepResult&)>;

class SpoiledSession final : public ForwardingSession {
 public:
  SpoiledSession(std::unique_ptr<kernels::Session> inner, const Spoil& spoil)
      : ForwardingSession(std::move(inner)), spoil_(spoil) {}
  Answer<StepResult> step(const StepRequest& request) override {
    auto answer = ForwardingSession::step(request);
    if (auto* result = std::get_if<StepResult>(&answer); result && spoil_) spoil_(request, *result);
    return answer;
  }

 private:
  const Spoil& spoil_;
};

class SpoiledTarget final : public kernels::Target {
 public:
  SpoiledTarget(const char* fault, Spoil spoil)
      : inner_(*fault ? kernels::make_cpu_naive(fault) : kernels::make_cpu_naive()),
        spoil_(std::move(spoil)) {}
  const kernels::Capabilities& capabilities() const override { return inner_->capabilities(); }
  Answer<std::unique_ptr<kernels::Session>> open(const kernels::SessionConfig& config) override {
    auto answer = inner_->open(config);
    auto* opened = std::get_if<std::unique_ptr<kernels::Session>>(&answer);
    if (!opened) return answer;
    return std::make_unique<SpoiledSession>(std::move(*opened), spoil_);
  }

 private:
  std::unique_ptr<kernels::Target> inner_;
  Spoil spoil_;
};

float& at(Tensor& tensor, std::int64_t index) {
  return reinterpret_cast<float*>(tensor.bytes.data())[index];
}

/// Whether `entry` explains how `property`, which must fail, fails on the target.
bool explained(kernels::Target& target, nlohmann::json entry, const char* id,
               const model::Scenario& scenario) {
  entry["schema"] = 1;
  entry["target"] = target.capabilities().name;
  entry["releases"] = nlohmann::json::object();
  entry["issue"] = "https://example.org/1";
  for (const char* kind : {"leak", "over_bound", "not_finite"})
    entry["failures"][id].push_back(kind);
  const KnownFinding known = known_finding_from(entry.dump(), "x.json");
  const Property& property = *find_property(id);
  Case c(target, scenario);
  EXPECT_EQ(property.inapplicable(scenario, target.capabilities()), "") << id;
  const Judgement judgement = property.judge(c);
  EXPECT_EQ(judgement.verdict, Verdict::failed) << id << ": " << judgement.text;
  return explains(known, c, property, judgement);
}

nlohmann::json one_query_entry() {
  return nlohmann::json::parse(R"({"reading":"causal.skipped_for_one_query","condition":
      {"operator":"attention","queries":1,"least_tokens":2,"least_past":1}})");
}

/// Fails every property in question by one query over new keys, and has a step of two queries.
model::Scenario one_query(const char* id) {
  auto s = model::parse_scenario(R"({"schema":1,"operator":"attention","opset":23,"head_size":4,
      "query_heads":2,"fill":{"kind":"random","seed":4},"steps":[{"past":2},
      {"append":3,"queries":1},{"append":2}]})");
  if (std::string_view(id) == "softcap.order") s.softcap = 2;
  if (std::string_view(id) == "mask.bias_columns") {
    s.mask.kind = model::MaskKind::boolean;
    s.mask.hidden_percent = 0;
  }
  if (std::string_view(id) == "mask.hidden_keys") s.steps.pop_back();  // It chooses one query.
  if (std::string_view(id) == "values.qk_output") s.qk_output = model::QkOutput::probabilities;
  return s;
}

class SkippedForOneQuery : public testing::TestWithParam<const char*> {};

TEST_P(SkippedForOneQuery, IsExplainedInWhateverRunThePropertyNeeds) {
  SpoiledTarget target("causal_skipped_single_query", nullptr);
  EXPECT_TRUE(explained(target, one_query_entry(), GetParam(), one_query(GetParam())));
}

TEST(SkippedWithinTheBound, IsExplainedWhereItMovesAnOutputWithinItsBound) {
  // Key 9 leaks with so small a weight that only bits tell.
  SpoiledTarget target("causal_skipped_single_query", nullptr);
  EXPECT_TRUE(explained(target, one_query_entry(), "mask.hidden_keys",
                        model::parse_scenario(R"({"schema":1,"operator":"attention","opset":23,
      "head_size":4,"value_head_size":1,"fill":{"kind":"selection","seed":34},
      "steps":[{"past":8},{"append":2,"queries":1}]})")));
}

TEST_P(SkippedForOneQuery, HidesNoFaultOfOtherQueries) {
  SpoiledTarget target("causal_skipped_single_query",
                       [](const StepRequest& request, StepResult& r) {
                         if (request.queries[0] < 2) return;
                         if (r.output) at(*r.output, 0) += 64;
                         if (r.qk) at(*r.qk, 0) += 64;
                       });
  if (std::string_view(GetParam()) == "mask.hidden_keys") return;  // It asks one step alone.
  EXPECT_FALSE(explained(target, one_query_entry(), GetParam(), one_query(GetParam())));
}

TEST_P(SkippedForOneQuery, HidesNoOtherFaultOfTheSameQuery) {
  SpoiledTarget target("causal_skipped_single_query",
                       [](const StepRequest& request, StepResult& r) {
                         if (request.queries[0] != 1) return;
                         for (std::int64_t i = 0; i < r.output->elements(); i += 4)
                           at(*r.output, i) += 64;
                         if (r.qk) at(*r.qk, 0) += 64;
                       });
  EXPECT_FALSE(explained(target, one_query_entry(), GetParam(), one_query(GetParam())));
}

INSTANTIATE_TEST_SUITE_P(Properties, SkippedForOneQuery,
                         testing::Values("mask.visible_set", "values.within_bound",
                                         "values.qk_output", "mask.hidden_keys",
                                         "mask.bias_columns", "softcap.order"));

TEST(SkippedForOneQuery, LeavesTheRightWindowInForce) {
  auto s = one_query("");
  s.opset = 25;
  s.right_window_size = 1;
  SpoiledTarget target("causal_skipped_single_query", nullptr);
  EXPECT_TRUE(explained(target, one_query_entry(), "mask.visible_set", s));
}

TEST(SkippedForOneQuery, GivesAnEmptyRowAKey) {
  auto s = one_query("");
  s.mask.kind = model::MaskKind::boolean;
  s.mask.rank = 3;
  s.mask.hidden_percent = 60;
  SpoiledTarget target("causal_skipped_single_query", nullptr);
  const Property& property = *find_property("mask.empty_rows");
  for (s.mask.seed = 0; s.mask.seed < 200; ++s.mask.seed) {
    if (judge_fresh(target, s, property).verdict == Verdict::failed) break;
  }
  EXPECT_TRUE(explained(target, one_query_entry(), "mask.empty_rows", s));
}

nlohmann::json lowest_entry() {
  return nlohmann::json::parse(
      R"({"values":"lowest_for_hidden","condition":{"operator":"attention"}})");
}

model::Scenario intermediates() {
  return model::parse_scenario(R"({"schema":1,"operator":"attention","opset":23,"head_size":4,
      "qk_output":"biased","steps":[{"past":1},{"append":3}]})");
}

void lowest_for_infinite(StepResult& result) {
  for (std::int64_t i = 0; result.qk && i < result.qk->elements(); ++i) {
    if (at(*result.qk, i) == -kInfinity) at(*result.qk, i) = kLowest;
  }
}

TEST(LowestForHidden, IsExplained) {
  SpoiledTarget target("", [](const StepRequest&, StepResult& r) { lowest_for_infinite(r); });
  EXPECT_TRUE(explained(target, lowest_entry(), "values.qk_output", intermediates()));
}

TEST(LowestForHidden, MayBeTheSumWithALogitThatOutweighsItsLastPlace) {
  // A logit of 2^106 is four last places of the lowest number.
  auto s = model::parse_scenario(R"({"schema":1,"operator":"attention","opset":23,"head_size":1,
      "scale":1,"qk_output":"biased","fill":{"kind":"literal"},"steps":[{"append":2,"queries":1,
      "q":[[[[9007199254740992]]]],"k":[[[[9007199254740992]],[[9007199254740992]]]],
      "v":[[[[1]],[[2]]]]}]})");
  for (const auto& [handed_out, known] : std::vector<std::pair<float, bool>>{
           {kLowest + 0x1p106f, true}, {kLowest, true}, {kLowest + 0x1p108f, false}}) {
    SpoiledTarget target(
        "", [value = handed_out](const StepRequest&, StepResult& r) { at(*r.qk, 1) = value; });
    EXPECT_EQ(explained(target, lowest_entry(), "values.qk_output", s), known) << handed_out;
  }
}

TEST(LowestForHidden, IsNotExplainedWhereTheKeyIsSeenOrTheNumberIsAnother) {
  SpoiledTarget seen("", [](const StepRequest&, StepResult& r) {
    lowest_for_infinite(r);
    at(*r.qk, 0) = kLowest;
  });
  EXPECT_FALSE(explained(seen, lowest_entry(), "values.qk_output", intermediates()));
  SpoiledTarget other("", [](const StepRequest&, StepResult& r) {
    lowest_for_infinite(r);
    for (std::int64_t i = r.qk->elements() - 1; i >= 0; --i) {
      if (at(*r.qk, i) != kLowest) continue;
      at(*r.qk, i) = -1e30f;
      return;
    }
  });
  EXPECT_FALSE(explained(other, lowest_entry(), "values.qk_output", intermediates()));
}

nlohmann::json overflow_entry() {
  return nlohmann::json::parse(
      R"({"values":"overflow_before_division","condition":{"operator":"gqa"}})");
}

/// The first query sees one value, the second two that add up to infinity.
model::Scenario two_large_values() {
  return model::parse_scenario(R"({"schema":1,"operator":"gqa","head_size":8,
      "fill":{"kind":"literal"},"steps":[{"append":2,
      "q":[[[[0,0,0,0,0,0,0,0]],[[0,0,0,0,0,0,0,0]]]],
      "k":[[[[0,0,0,0,0,0,0,0]],[[0,0,0,0,0,0,0,0]]]],
      "v":[[[[3e38,1,1,1,1,1,1,1]],[[3e38,1,1,1,1,1,1,1]]]]}]})");
}

TEST(OverflowBeforeDivision, IsExplainedWhereTheSumOverflows) {
  for (const char* id : {"values.within_bound", "values.finite"}) {
    SpoiledTarget target("",
                         [](const StepRequest&, StepResult& r) { at(*r.output, 8) = kInfinity; });
    EXPECT_TRUE(explained(target, overflow_entry(), id, two_large_values()));
    SpoiledTarget other("", [](const StepRequest&, StepResult& r) {
      at(*r.output, 8) = kInfinity;
      at(*r.output, 9) = kInfinity;  // 1 and 1.
    });
    EXPECT_FALSE(explained(other, overflow_entry(), id, two_large_values()));
    SpoiledTarget alone("", [](const StepRequest&, StepResult& r) {
      at(*r.output, 8) = kInfinity;
      at(*r.output, 0) = kInfinity;  // 3e38 alone.
    });
    EXPECT_FALSE(explained(alone, overflow_entry(), id, two_large_values()));
  }
}

TEST(LowestRowIsEmpty, IsExplainedWhereAllThatIsSeenIsLowered) {
  const auto entry = nlohmann::json::parse(
      R"({"values":"lowest_row_is_empty","condition":{"operator":"attention"}})");
  const auto s = model::parse_scenario(R"({"schema":1,"operator":"attention","opset":23,
      "head_size":1,"causal":false,"mask":{"kind":"additive","rank":2},"fill":{"kind":"literal"},
      "steps":[{"append":2,"q":[[[[0]],[[0]]]],"k":[[[[0]],[[0]]]],"v":[[[[1]],[[1]]]],
      "mask":[[-3.4028234663852886e38,-3.4028234663852886e38],[-3.4028234663852886e38,0]]}]})");
  const auto spoiled = [&](std::vector<float> output) {
    SpoiledTarget target("", [output](const StepRequest&, StepResult& r) {
      for (std::size_t i = 0; i < output.size(); ++i) {
        at(*r.output, static_cast<std::int64_t>(i)) = output[i];
      }
    });
    return explained(target, entry, "values.within_bound", s);
  };
  EXPECT_TRUE(spoiled({0, 1}));   // Right are 1 and 1.
  EXPECT_FALSE(spoiled({0, 0}));  // The second row has a key that nothing lowers.
  EXPECT_FALSE(spoiled({0.5, 1}));
}

TEST(Rules, AreExplainedByTheirNames) {
  auto json = nlohmann::json::parse(R"({"schema":1,"target":"cpu-naive","releases":{},
      "failures":{"calls.refused":["wrongly_accepted"]},"rules":["output_mode"],
      "condition":{"operator":"attention","opsets":[23]},"issue":"https://example.org/1"})");
  const auto target = kernels::make_cpu_naive();
  const Property& property = *find_property("calls.refused");
  const auto explains_rule = [&](const char* rule, int opset) {
    auto s = intermediates();
    s.opset = opset;
    Case c(*target, s);
    Judgement judgement = Judgement::failed(Kind::wrongly_accepted, "");
    judgement.rule = rule;
    return explains(known_finding_from(json.dump(), "x.json"), c, property, judgement);
  };
  EXPECT_TRUE(explains_rule("output_mode", 23));
  EXPECT_FALSE(explains_rule("scale_positive", 23));
  EXPECT_FALSE(explains_rule("output_mode", 24));
}

}  // namespace
}  // namespace kvcheck::properties
