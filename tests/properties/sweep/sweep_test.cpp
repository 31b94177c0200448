// Counts, groups and cells of whole sweeps.
#include "properties/sweep/sweep.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "kernels/cpu/naive/cpu_naive.h"
#include "tests/properties/sweep/sub_grid.h"

namespace kvcheck::properties {
namespace {

std::function<TargetPointer()> naive(const char* fault = "") {
  return [fault]() -> TargetPointer {
    return *fault ? kernels::make_cpu_naive(fault) : kernels::make_cpu_naive();
  };
}

/// 31 has no factor in common with any axis.
Grid part_of(const char* name) { return sub_grid(*find_grid(name), 0, 31); }

std::int64_t affected(const Grid& grid) {
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < grid.count; ++i) {
    const auto at = grid.at(i).at;
    count += at[3] == 0 && at[4] > 0 && at[5] > 0 && at[6] == 1;
  }
  return count;
}

TEST(Sweep, AHealthyTargetAgreesEverywhere) {
  for (const char* name : {"causal-past", "windowed-small"}) {
    const Grid grid = part_of(name);
    Workers workers = workers_of(2, naive());
    const auto result = sweep(grid, workers, false);
    EXPECT_EQ(result.agree, grid.count) << name;
    EXPECT_EQ(result.diverge + result.refused + result.errored, 0) << name;
    EXPECT_TRUE(result.groups.empty()) << name;
    EXPECT_GT(result.max_ratio, 0.1) << name;
  }
}

TEST(Sweep, TheCellOfThread34226IsFoundAndExplained) {
  const Grid grid = part_of("causal-past");
  Workers workers = workers_of(2, naive("causal_skipped_single_query"));
  const auto result = sweep(grid, workers, false);
  EXPECT_EQ(result.diverge, affected(grid));
  EXPECT_EQ(result.explained, result.diverge);
  EXPECT_EQ(result.agree, grid.count - result.diverge);
  ASSERT_EQ(result.groups.size(), 1u);
  const SweepGroup& group = result.groups[0];
  EXPECT_EQ(group.model->name, "causal.skipped_for_one_query");
  EXPECT_TRUE(group.cell.exact());
  EXPECT_EQ(cell_words(grid, group.cell), "queries = 1, new keys > 1, past > 0 and is_causal = 1");
  EXPECT_EQ(result.all.members, result.diverge);
}

TEST(Sweep, WhatTheLedgerExplainsIsCountedUnderItsEntry) {
  const Grid grid = part_of("causal-past");
  KnownFinding known;
  known.target = "cpu-naive+causal_skipped_single_query";
  known.failures["mask.visible_set"] = {"leak"};
  known.condition.queries = 1;
  known.condition.least_tokens = 2;
  known.reading = "causal.skipped_for_one_query";
  const auto swept = [&] {
    Workers workers = workers_of(2, naive("causal_skipped_single_query"));
    return sweep(grid, workers, false, nullptr, {&known, 1});
  };
  const auto result = swept();
  ASSERT_EQ(result.groups.size(), 1u);
  EXPECT_EQ(result.groups[0].known, &known);
  EXPECT_EQ(result.known.at(&known), affected(grid));
  // Of four new keys on alone it is about a part of them.
  known.condition.least_tokens = 4;
  const auto part = swept();
  EXPECT_EQ(part.groups.size(), 2u);
  EXPECT_EQ(part.diverge, affected(grid));
  EXPECT_GT(part.known.at(&known), 0);
  EXPECT_LT(part.known.at(&known), affected(grid));
}

void expect_same(const SweepResult& a, const SweepResult& b) {
  EXPECT_EQ(a.agree, b.agree);
  EXPECT_EQ(a.diverge, b.diverge);
  EXPECT_EQ(a.explained, b.explained);
  ASSERT_EQ(a.groups.size(), b.groups.size());
  for (std::size_t i = 0; i < a.groups.size(); ++i) {
    EXPECT_EQ(a.groups[i].model, b.groups[i].model);
    EXPECT_EQ(a.groups[i].first, b.groups[i].first);
    EXPECT_EQ(a.groups[i].text, b.groups[i].text);
    EXPECT_EQ(a.groups[i].cell.where, b.groups[i].cell.where);
    EXPECT_EQ(a.groups[i].differs_elsewhere, b.groups[i].differs_elsewhere);
  }
}

TEST(Sweep, TheNumberOfWorkersChangesNothing) {
  const Grid grid = part_of("windowed-small");
  const auto with = [&](int count) {
    Workers workers = workers_of(count, naive("compaction_one_row_short"));
    return sweep(grid, workers, false);
  };
  const auto one = with(1);
  ASSERT_GT(one.groups.size(), 1u);
  expect_same(one, with(3));
}

TEST(Sweep, WhatATargetDoesNotClaimIsRefusedWithItsReason) {
  const Grid grid = part_of("causal-past");
  Workers workers = workers_of(1, [] { return kernels::make_cpu_naive_quantised("int8"); });
  const auto result = sweep(grid, workers, false);
  EXPECT_EQ(result.refused, grid.count);
  ASSERT_EQ(result.refusals.size(), 1u);
  EXPECT_EQ(result.refusals.begin()->first, "does not claim operator attention");
}

TEST(Sweep, TwoTargetsThatAreOneAreEqual) {
  const Grid grid = part_of("causal-past");
  Workers workers = workers_of(2, naive(), naive());
  const auto result = sweep(grid, workers, true);
  EXPECT_EQ(result.agree, grid.count);
  EXPECT_EQ(result.target_breaks + result.against_breaks + result.both_alike_break, 0);
}

TEST(Sweep, OfTwoTargetsTheOneThatBreaksTheContractIsNamed) {
  const Grid grid = part_of("causal-past");
  const char* fault = "causal_skipped_single_query";
  Workers broken_first = workers_of(2, naive(fault), naive());
  const auto first = sweep(grid, broken_first, true);
  EXPECT_EQ(first.diverge, affected(grid));
  EXPECT_EQ(first.target_breaks, affected(grid));
  EXPECT_EQ(first.against_breaks, 0);
  ASSERT_EQ(first.groups.size(), 1u);
  EXPECT_EQ(first.groups[0].breaker, Breaker::target);
  Workers broken_second = workers_of(2, naive(), naive(fault));
  const auto second = sweep(grid, broken_second, true);
  EXPECT_EQ(second.target_breaks, 0);
  EXPECT_EQ(second.against_breaks, affected(grid));
  ASSERT_EQ(second.groups.size(), 1u);
  EXPECT_EQ(second.groups[0].breaker, Breaker::against);
  EXPECT_EQ(second.groups[0].model->name, "causal.skipped_for_one_query");
}

TEST(Sweep, TwoTargetsThatAreWrongAlikeAreEqualAndCounted) {
  const Grid grid = part_of("causal-past");
  const char* fault = "causal_skipped_single_query";
  Workers workers = workers_of(1, naive(fault), naive(fault));
  const auto result = sweep(grid, workers, true);
  EXPECT_EQ(result.agree, grid.count);
  EXPECT_EQ(result.both_alike_break, affected(grid));
}

TEST(Sweep, InterruptionKeepsWhatWasFound) {
  std::atomic<bool> interrupted{false};
  const Grid whole = part_of("causal-past");
  Grid grid = whole;
  grid.at = [&](std::int64_t i) {
    if (i == 600) interrupted = true;
    return whole.at(i);
  };
  Workers workers = workers_of(1, naive("causal_skipped_single_query"), nullptr, &interrupted);
  const auto result = sweep(grid, workers, false);
  EXPECT_TRUE(result.interrupted);
  EXPECT_EQ(result.done, 601);
  EXPECT_GT(result.diverge, 0);
  EXPECT_FALSE(result.groups.empty());
}

}  // namespace
}  // namespace kvcheck::properties
