// One configuration on healthy, broken and modest targets.
#include "properties/sweep/outcome.h"

#include <gtest/gtest.h>

#include "kernels/cpu/naive/cpu_naive.h"
#include "properties/sweep/grid.h"
#include "tests/properties/model_target.h"

namespace kvcheck::properties {
namespace {

/// opset 23, causal, past 1, one query, two new keys, no mask.
model::Scenario affected() {
  const Grid& grid = *find_grid("causal-past");
  for (std::int64_t i = 0; i < grid.count; ++i) {
    const auto [s, at] = grid.at(i);
    if (at[3] == 0 && at[4] == 1 && at[5] == 1 && at[6] == 1 && at[7] == 0) return s;
  }
  return {};
}

TEST(Outcome, AHealthyTargetAgrees) {
  const auto target = kernels::make_cpu_naive();
  Case c(*target, affected());
  const auto result = judge_configuration(c, true);
  EXPECT_EQ(result.outcome, SweepOutcome::agree) << result.text;
  EXPECT_GT(result.ratio, 0);
  EXPECT_LE(result.ratio, 1);
}

TEST(Outcome, ALeakIsSeenAsASetWhereThoseAreWanted) {
  const auto target = kernels::make_cpu_naive("causal_skipped_single_query");
  Case c(*target, affected());
  const auto sets = judge_configuration(c, true);
  ASSERT_EQ(sets.outcome, SweepOutcome::diverge);
  EXPECT_EQ(sets.property->id, "mask.visible_set");
  EXPECT_EQ(sets.kind, Kind::leak);
  const auto values = judge_configuration(c, false);
  ASSERT_EQ(values.outcome, SweepOutcome::diverge);
  EXPECT_EQ(values.property->id, "values.within_bound");
  EXPECT_GT(values.ratio, 1);
}

TEST(Outcome, AnIntermediateAloneIsSeen) {
  model::Scenario s = affected();
  s.qk_output = model::QkOutput::raw;
  const auto target = make_model_target(s, [](std::size_t, kernels::StepResult& result) {
    if (result.qk) result.qk->bytes[3] ^= std::byte{0x40};  // The exponent of one element.
  });
  Case c(*target, s);
  const auto result = judge_configuration(c, false);
  ASSERT_EQ(result.outcome, SweepOutcome::diverge);
  EXPECT_EQ(result.property->id, "values.qk_output");
}

TEST(Outcome, WhatIsNotClaimedIsNotAsked) {
  auto claims = all_capabilities();
  EXPECT_EQ(refused_reason(claims, affected()), "");
  claims.features.erase("load");
  EXPECT_EQ(refused_reason(claims, affected()), "does not claim load");
}

TEST(Outcome, AnInexactRollbackIsAskedOfThoseWhoPromiseToRefuseIt) {
  const Grid& grid = *find_grid("windowed-small");
  std::int64_t i = 0;
  while (grid.at(i).at[4] != 2) ++i;
  const model::Scenario s = grid.at(i).scenario;
  auto claims = all_capabilities();
  claims.features.insert("checks_rollback");
  EXPECT_EQ(refused_reason(claims, s), "");
  claims.features.erase("checks_rollback");
  EXPECT_EQ(refused_reason(claims, s), "does not promise to refuse an inexact rollback");
}

}  // namespace
}  // namespace kvcheck::properties
