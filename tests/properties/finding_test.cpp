// A finding shrinks to a case that a person can check by hand.
#include "properties/finding.h"

#include <gtest/gtest.h>

#include "kernels/cpu/naive/cpu_naive.h"
#include "model/scenario_json.h"
#include "properties/search.h"
#include "tests/properties/first_failure.h"

namespace kvcheck::properties {
namespace {

FindingRecord find_and_shrink(const char* fault, const char* property_id, std::uint64_t seed) {
  const auto target = kernels::make_cpu_naive(fault);
  const Property& property = *find_property(property_id);
  const auto failure = first_failure(*target, property, seed, 3000);
  EXPECT_TRUE(failure.has_value());
  return investigate(*target, property, failure->judgement, failure->scenario, {});
}

TEST(Finding, Thread34226ShrinksToOneQueryTwoKeysAndAPastOfOne) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    const auto finding = find_and_shrink("causal_skipped_single_query", "mask.visible_set", seed);
    const auto& s = finding.minimal;
    EXPECT_EQ(finding.kind, Kind::leak);
    EXPECT_TRUE(finding.is_minimal);
    EXPECT_TRUE(finding.deterministic);
    EXPECT_EQ(s.batch, 1);
    EXPECT_EQ(s.query_heads, 1);
    EXPECT_EQ(s.head_size, 1);
    EXPECT_EQ(s.value_head_size, 1);
    ASSERT_EQ(s.steps.size(), 2u) << model::canonical_text(s);
    ASSERT_TRUE(std::holds_alternative<model::Past>(s.steps[0])) << model::canonical_text(s);
    EXPECT_EQ(std::get<model::Past>(s.steps[0]).tokens[0], 1);
    const auto& append = std::get<model::Append>(s.steps[1]);
    EXPECT_EQ(append.tokens[0], 2);
    EXPECT_EQ(append.queries[0], 1);
    EXPECT_EQ(s.mask.kind, model::MaskKind::none);
  }
}

TEST(Finding, EvidenceNamesTheLeakedKey) {
  const auto finding = find_and_shrink("causal_skipped_single_query", "mask.visible_set", 1);
  ASSERT_EQ(finding.evidence.steps.size(), 2u);
  const auto& seen = finding.evidence.steps[1].visibility;
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].expected, (std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ(seen[0].observed, (std::vector<std::int64_t>{0, 1, 2}));
  bool said = false;
  for (const auto& sentence : finding.evidence.words) {
    said = said || sentence == "Key 2 is later than the query: it leaks.";
  }
  EXPECT_TRUE(said);
  EXPECT_FALSE(finding.nearest_passing.empty());
  EXPECT_FALSE(finding.explain.empty());
}

TEST(Finding, WindowOneWideShrinksToAWindowOfOne) {
  const auto finding = find_and_shrink("window_one_wide", "mask.visible_set", 1);
  EXPECT_EQ(finding.minimal.cache.window_size, 1);
  EXPECT_EQ(finding.minimal.batch, 1);
  std::int64_t tokens = 0;
  for (const auto& step : finding.minimal.steps) {
    if (const auto* append = std::get_if<model::Append>(&step)) tokens += append->tokens[0];
    if (const auto* past = std::get_if<model::Past>(&step)) tokens += past->tokens[0];
  }
  EXPECT_EQ(tokens, 2) << model::canonical_text(finding.minimal);
}

TEST(Finding, ShrinkingKeepsPropertyAndKind) {
  const auto finding = find_and_shrink("rollback_ignored", "cache.rollback_exactness", 1);
  const auto target = kernels::make_cpu_naive("rollback_ignored");
  const auto again =
      judge_fresh(*target, finding.minimal, *find_property("cache.rollback_exactness"));
  EXPECT_EQ(again.verdict, Verdict::failed);
  EXPECT_EQ(again.kind, finding.kind);
}

TEST(Finding, ANondeterministicFailureIsSaidToBeOne) {
  const auto finding = find_and_shrink("sum_order_varies", "cache.unspecified_rows", 1);
  EXPECT_FALSE(finding.evidence.words.empty());
}

}  // namespace
}  // namespace kvcheck::properties
