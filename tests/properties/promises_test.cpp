// Each promise of equal bits is broken, and found by the property that is named
// for it; a target that keeps them all is green.
#include <filesystem>

#include <gtest/gtest.h>

#include "model/scenario_json.h"
#include "properties/finding.h"
#include "properties/search.h"
#include "tests/properties/first_failure.h"
#include "tests/properties/promise_breaker.h"

namespace kvcheck::properties {
namespace {

namespace fs = std::filesystem;

struct Broken {
  Promise promise;
  const char* property;
  const char* feature;
  Kind kind;
  /// A scenario to which the property applies.
  const char* scenario = R"({"schema":1,"operator":"gqa","head_size":8,"batch":2,"query_heads":2,
      "cache":{"layout":"block","capacity":7,"window_size":3},
      "steps":[{"append":6},{"rollback":2},{"append":2}]})";
  std::int64_t query_heads = 1;  ///< Of the minimal scenario.
};

constexpr const char* kAttention =
    R"({"schema":1,"operator":"attention","opset":23,"steps":[{"append":3}]})";
constexpr const char* kFull = R"({"schema":1,"operator":"gqa","steps":[{"append":3}]})";

void PrintTo(const Broken& broken, std::ostream* out) { *out << broken.feature; }

constexpr Broken kBroken[] = {
    {Promise::split, "cache.split_invariance", "split_bits", Kind::split_difference},
    {Promise::window, "cache.window_equals_full", "window_bits", Kind::bits_difference},
    {Promise::capacity, "cache.any_capacity", "capacity_bits", Kind::bits_difference},
    {Promise::threads, "target.thread_count", "threads_bits", Kind::bits_difference},
    {Promise::schedule, "target.schedules", "schedule_bits", Kind::bits_difference},
    {Promise::isa, "target.instruction_set", "isa_bits", Kind::bits_difference},
    {Promise::company, "batch.no_company", "company_bits", Kind::influence},
    {Promise::rollback, "cache.rollback_exactness", "rollback_bits", Kind::rollback_difference},
    {Promise::repeat, "target.repeat", "repeat_bits", Kind::nondeterministic},
    {Promise::order, "batch.permutation", "order_bits", Kind::bits_difference},
    {.promise = Promise::order,
     .property = "heads.permutation",
     .feature = "order_bits",
     .kind = Kind::bits_difference,
     .query_heads = 2},
    {Promise::packed, "input.packed", "format_bits", Kind::bits_difference},
    {Promise::rank, "input.rank_three", "format_bits", Kind::bits_difference, kAttention},
    {Promise::separate, "cache.shared_buffers", "format_bits", Kind::bits_difference},
    {Promise::intermediate, "values.qk_output_is_free", "format_bits", Kind::bits_difference,
     kFull},
    {Promise::scaling, "values.power_of_two", "scaling_bits", Kind::bits_difference},
};

class EveryPromise : public testing::TestWithParam<Broken> {};

TEST_P(EveryPromise, BrokenByOneBitIsFoundShrunkAndFailsAgain) {
  const Property& property = *find_property(GetParam().property);
  const auto target = make_promise_breaker(GetParam().promise);
  const auto failure = first_failure(*target, property, 5, 300, Walk::random_only);
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->judgement.kind, GetParam().kind);
  EXPECT_NE(failure->judgement.text.find("equal bits are promised"), std::string::npos)
      << failure->judgement.text;

  const FindingRecord finding =
      investigate(*target, property, failure->judgement, failure->scenario, {});
  EXPECT_TRUE(finding.deterministic);
  EXPECT_TRUE(finding.is_minimal);
  EXPECT_LE(finding.minimal.steps.size(), 3u) << model::canonical_text(finding.minimal);
  EXPECT_EQ(finding.minimal.query_heads, GetParam().query_heads);
  const auto replayed = model::parse_scenario(model::canonical_text(finding.minimal));
  const auto fresh = make_promise_breaker(GetParam().promise);
  const Judgement again = judge_fresh(*fresh, replayed, property);
  EXPECT_EQ(again.verdict, Verdict::failed);
  EXPECT_EQ(again.kind, GetParam().kind);
  EXPECT_EQ(judge_fresh(*make_promise_breaker({}), replayed, property).verdict, Verdict::passed);
}

TEST_P(EveryPromise, IsNotHeldToBitsWhereItIsNotMade) {
  const Property& property = *find_property(GetParam().property);
  const auto scenario = model::parse_scenario(GetParam().scenario);
  const auto claimed = make_promise_breaker(GetParam().promise);
  const auto silent = make_promise_breaker(GetParam().promise, GetParam().feature);
  EXPECT_EQ(judge_fresh(*claimed, scenario, property).verdict, Verdict::failed);
  EXPECT_EQ(property.inapplicable(scenario, claimed->capabilities()), "");
  if (property.promise.empty()) {  // Judged by the bound instead.
    EXPECT_EQ(property.inapplicable(scenario, silent->capabilities()), "");
    const Judgement judgement = judge_fresh(*silent, scenario, property);
    EXPECT_EQ(judgement.verdict, Verdict::passed) << judgement.text;
  } else {
    EXPECT_EQ(property.promise, GetParam().feature);
    EXPECT_EQ(property.inapplicable(scenario, silent->capabilities()),
              std::string("the target does not promise ") + GetParam().feature);
  }
}

INSTANTIATE_TEST_SUITE_P(Broken, EveryPromise, testing::ValuesIn(kBroken), [](const auto& broken) {
  std::string name = std::string(broken.param.property) + "_" + broken.param.feature;
  for (char& c : name) c = c == '.' ? '_' : c;
  return name;
});

TEST(Promises, KeptOnesAreGreen) {
  const auto target = make_promise_breaker({});
  for (const Broken& broken : kBroken) {
    const auto failure = first_failure(*target, *find_property(broken.property), 6, 300);
    EXPECT_FALSE(failure.has_value()) << broken.property << ": " << failure->judgement.text;
  }
}

TEST(Promises, OneStepIsCutAtRandomPlaces) {
  // Neither one token at a time nor one merged step has several tokens behind others.
  const auto target = make_promise_breaker(Promise::chunk);
  const auto scenario = model::parse_scenario(R"({"schema":1,"operator":"gqa","head_size":8,
      "fill":{"kind":"random","seed":1},"steps":[{"append":40}]})");
  const auto judgement = judge_fresh(*target, scenario, *find_property("cache.split_invariance"));
  EXPECT_EQ(judgement.verdict, Verdict::failed);
  EXPECT_NE(judgement.text.find("cut at random"), std::string::npos) << judgement.text;
}

TEST(Promises, PaddingThatCountsIsToldFromUnusedRows) {
  const auto target = make_promise_breaker(Promise::padding);
  const auto scenario = model::parse_scenario(R"({"schema":1,"operator":"gqa","batch":2,
      "head_size":8,"cache":{"capacity":8},"steps":[{"append":[3,1]},{"append":1}]})");
  const auto verdict = [&](const char* property) {
    return judge_fresh(*target, scenario, *find_property(property)).verdict;
  };
  EXPECT_EQ(verdict("batch.padding"), Verdict::failed);
  EXPECT_EQ(verdict("cache.unspecified_rows"), Verdict::passed);
  const auto failure = first_failure(*target, *find_property("batch.padding"), 5, 300);
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->judgement.kind, Kind::influence);
}

class PromiseSearch : public testing::Test {
 protected:
  PromiseSearch() {
    root_ =
        fs::temp_directory_path() / (std::string("kvcheck_promises_") +
                                     testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(root_);
    options_.failing = root_ / "failing";
    options_.origin = root_ / "origin";
    options_.deadline = Clock::now() + std::chrono::minutes(5);
    options_.cases = 240;
    options_.seed = 4;
  }
  ~PromiseSearch() override { fs::remove_all(root_); }

  RunRecord run(std::optional<Promise> broken, const char* property) {
    options_.properties = {find_property(property)};
    const auto target = make_promise_breaker(broken);
    RunRecord record;
    Search(*target, options_, record, Clock::now(), {}).run();
    return record;
  }

  fs::path root_;
  SearchOptions options_;
};

TEST_F(PromiseSearch, FindsEachBrokenPromise) {
  for (const Broken& broken : kBroken) {
    const RunRecord record = run(broken.promise, broken.property);
    ASSERT_EQ(record.findings.size(), 1u) << broken.property;
    EXPECT_EQ(record.findings[0].kind, broken.kind);
    EXPECT_EQ(record.properties[0].status, Verdict::failed);
  }
}

TEST_F(PromiseSearch, JudgesEveryPropertyOnEveryScenario) {
  const auto judged_at_random = [&](const char* property) {
    options_.cases = 240;
    const auto all = run({}, property).properties[0];
    options_.cases = 1;
    const auto grid = run({}, property).properties[0];
    return all.scenarios - grid.scenarios;
  };
  for (const char* property : {"target.repeat", "target.thread_count", "target.instruction_set"}) {
    EXPECT_EQ(judged_at_random(property), 239) << property;
  }
}

TEST(Promises, ASearchSaysWhichAreNotMade) {
  SearchOptions options;
  options.deadline = Clock::now();
  options.properties = {find_property("target.thread_count"), find_property("target.answers")};
  RunRecord record;
  const auto target = make_promise_breaker({}, "threads_bits");
  Search(*target, options, record, Clock::now(), {});
  ASSERT_EQ(record.properties.size(), 2u);
  EXPECT_EQ(record.properties[0].status, Verdict::skipped);
  EXPECT_EQ(record.properties[0].reason, "the target does not promise threads_bits");
  EXPECT_EQ(record.properties[1].reason, "");
}

}  // namespace
}  // namespace kvcheck::properties
