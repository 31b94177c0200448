// Each of the eight promises of equal bits is broken once, and found by the property that is named
// for it; a target that keeps them all is green.
#include <filesystem>

#include <gtest/gtest.h>

#include "kernels/cpu/cpu_naive.h"
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
};

constexpr Broken kBroken[] = {
    {Promise::split, "cache.split_invariance", "split_bits", Kind::split_difference},
    {Promise::window, "cache.window_equals_full", "window_bits", Kind::bits_difference},
    {Promise::capacity, "cache.any_capacity", "capacity_bits", Kind::bits_difference},
    {Promise::threads, "target.thread_count", "threads_bits", Kind::bits_difference},
    {Promise::isa, "target.instruction_set", "isa_bits", Kind::bits_difference},
    {Promise::company, "batch.no_company", "company_bits", Kind::influence},
    {Promise::rollback, "cache.rollback_exactness", "rollback_bits", Kind::rollback_difference},
    {Promise::repeat, "target.repeat", "repeat_bits", Kind::nondeterministic},
};

class EveryPromise : public testing::TestWithParam<Broken> {};

TEST_P(EveryPromise, BrokenByOneBitIsFoundShrunkAndFailsAgain) {
  const Property& property = *find_property(GetParam().property);
  const auto target = make_promise_breaker(GetParam().promise);
  const auto failure = first_failure(*target, property, 5, 300);
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->judgement.kind, GetParam().kind);
  EXPECT_NE(failure->judgement.text.find("equal bits are promised"), std::string::npos)
      << failure->judgement.text;

  const FindingRecord finding =
      investigate(*target, property, failure->judgement, failure->scenario, {});
  EXPECT_TRUE(finding.deterministic);
  EXPECT_TRUE(finding.is_minimal);
  EXPECT_LE(finding.minimal.steps.size(), 3u) << model::canonical_text(finding.minimal);
  EXPECT_EQ(finding.minimal.query_heads, 1);
  const auto replayed = model::parse_scenario(model::canonical_text(finding.minimal));
  const auto fresh = make_promise_breaker(GetParam().promise);
  const Judgement again = judge_fresh(*fresh, replayed, property);
  EXPECT_EQ(again.verdict, Verdict::failed);
  EXPECT_EQ(again.kind, GetParam().kind);
  EXPECT_EQ(judge_fresh(*make_promise_breaker({}), replayed, property).verdict, Verdict::passed);
}

TEST_P(EveryPromise, IsNotJudgedBitForBitWhereItIsNotMade) {
  kernels::Capabilities silent = make_promise_breaker({})->capabilities();
  silent.features.erase(GetParam().feature);
  const Property& property = *find_property(GetParam().property);
  if (property.promise.empty()) return;  // Judged by the bound instead.
  EXPECT_EQ(property.promise, GetParam().feature);
  const auto scenario = model::parse_scenario(R"({"schema":1,"operator":"gqa","head_size":8,
      "cache":{"layout":"block","capacity":6,"window_size":4},"steps":[{"append":7}]})");
  EXPECT_EQ(property.inapplicable(scenario, silent),
            std::string("the target does not promise ") + GetParam().feature);
  EXPECT_EQ(property.inapplicable(scenario, make_promise_breaker({})->capabilities()), "");
}

INSTANTIATE_TEST_SUITE_P(Broken, EveryPromise, testing::ValuesIn(kBroken),
                         [](const auto& broken) { return std::string(broken.param.feature); });

TEST(Promises, KeptOnesAreGreen) {
  const auto target = make_promise_breaker({});
  for (const Broken& broken : kBroken) {
    const auto failure = first_failure(*target, *find_property(broken.property), 6, 300);
    EXPECT_FALSE(failure.has_value()) << broken.property << ": " << failure->judgement.text;
  }
}

/// A search judges the costly properties on a share of its scenarios, and finds all eight.
TEST(Promises, AreFoundByASearchThatJudgesThemOnAShare) {
  const fs::path root = fs::temp_directory_path() / "kvcheck_promises";
  for (const Broken& broken : kBroken) {
    fs::remove_all(root);
    SearchOptions options;
    options.failing = root / "failing";
    options.origin = root / "origin";
    options.deadline = Clock::now() + std::chrono::minutes(5);
    options.cases = 40;
    options.seed = 4;
    options.properties = {find_property(broken.property)};
    RunRecord record;
    const auto target = make_promise_breaker(broken.promise);
    Search(*target, options, record, Clock::now(),
           {[](const model::Scenario&) {}, [] {}, [](const FindingRecord&) {},
            [](const std::string&) {}})
        .run();
    ASSERT_EQ(record.findings.size(), 1u) << broken.property;
    EXPECT_EQ(record.findings[0].kind, broken.kind);
    EXPECT_EQ(record.properties[0].status, Verdict::failed);
  }
  fs::remove_all(root);
}

TEST(Promises, ASearchSaysWhichAreNotMade) {
  SearchOptions options;
  options.deadline = Clock::now();
  options.properties = {find_property("target.thread_count"), find_property("target.answers")};
  RunRecord record;
  const auto target = kernels::make_cpu_naive();
  Search(*target, options, record, Clock::now(), {});
  ASSERT_EQ(record.properties.size(), 2u);
  EXPECT_EQ(record.properties[0].status, Verdict::skipped);
  EXPECT_EQ(record.properties[0].reason, "the target does not promise threads_bits");
  EXPECT_EQ(record.properties[1].reason, "");
}

}  // namespace
}  // namespace kvcheck::properties
