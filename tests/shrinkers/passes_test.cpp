// Each pass alone does what its name says and keeps what a failure needs.
#include "shrinkers/passes.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "shrinkers/edits.h"
#include "tests/shrinkers/predicates.h"
#include "tests/shrinkers/random_scenario.h"
#include "tests/shrinkers/run_pass.h"

namespace kvcheck::shrinkers {
namespace {

using model::Append;
using model::LayoutKind;
using model::Operator;
using model::Past;
using model::Rollback;
using model::Scenario;
using testing::after;
using testing::always;
using testing::plain_scenario;
using testing::random_scenario;
using testing::steps_text;

Scenario appends(int count) {
  std::vector<model::Step> steps;
  for (int i = 1; i <= count; ++i) steps.push_back(Append{{i}, {i}, 0});
  return plain_scenario(std::move(steps));
}

bool has_step(const Scenario& s, std::int64_t tokens) {
  return std::any_of(s.steps.begin(), s.steps.end(), [&](const model::Step& step) {
    return largest(tokens_of(step)) == tokens && std::holds_alternative<Append>(step);
  });
}

TEST(Passes, HaveDistinctNamesSizesFirstAndCoupledNumbersLast) {
  std::set<std::string_view> names;
  for (const Pass& pass : passes()) names.insert(pass.name);
  EXPECT_EQ(names.size(), passes().size());
  EXPECT_EQ(passes().front().name, "minima");
  EXPECT_EQ(passes().back().name, "coupled");
}

TEST(Passes, RunNothingOnTheSmallestScenario) {
  for (const Pass& pass : passes()) {
    std::int64_t evaluations = -1;
    after(pass.run, plain_scenario({Past{{1}}}), always, &evaluations);
    EXPECT_EQ(evaluations, 0) << pass.name;
  }
}

TEST(Passes, NeverRunMoreThanAFewTimesTheStepsWhenNothingHelps) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    const Scenario s = random_scenario(seed % 2 ? Operator::gqa : Operator::attention, seed);
    for (const Pass& pass : passes()) {
      std::int64_t evaluations = 0;
      after(
          pass.run, s, [](const Scenario&) { return false; }, &evaluations);
      EXPECT_LE(evaluations, 12 + 9 * static_cast<std::int64_t>(s.steps.size()) * s.batch)
          << pass.name;
    }
  }
}

TEST(BatchPass, KeepsTheFailingEntryWithItsLength) {
  const Scenario s = plain_scenario({Append{{3, 9, 4}, {3, 9, 4}, 0}});
  const auto fails = [](const Scenario& t) { return largest(tokens_of(t.steps[0])) == 9; };
  const Scenario kept = after(shrink_batch, s, fails);
  EXPECT_EQ(kept.batch, 1);
  EXPECT_EQ(steps_text(kept), "append 9");
}

TEST(BatchPass, KeepsTwoEntriesWhereTheFailureNeedsTwo) {
  const Scenario s = plain_scenario({Append{{3, 3, 9, 3, 4}, {3, 3, 9, 3, 4}, 0}});
  const auto fails = [](const Scenario& t) {
    const auto& tokens = tokens_of(t.steps[0]);
    return std::count(tokens.begin(), tokens.end(), 9) &&
           std::count(tokens.begin(), tokens.end(), 4);
  };
  EXPECT_EQ(steps_text(after(shrink_batch, s, fails)), "append [9, 4]");
}

TEST(HeadPasses, RepairDivisibility) {
  Scenario s = plain_scenario({Past{{1}}});
  s.kv_heads = 6;
  s.query_heads = 18;
  const Scenario fewer =
      after(shrink_kv_heads, s, [](const Scenario& t) { return t.kv_heads >= 4; });
  EXPECT_EQ(fewer.kv_heads, 4);
  EXPECT_EQ(fewer.query_heads, 12);
  const Scenario single =
      after(shrink_query_heads, fewer, [](const Scenario& t) { return t.query_heads >= 5; });
  EXPECT_EQ(single.query_heads, 8);
}

TEST(HeadSizePass, FindsTheOnlySizeThatAKernelTakes) {
  Scenario s = plain_scenario({Past{{1}}});
  s.head_size = s.value_head_size = 128;
  const auto supported = [](const Scenario& t) { return t.head_size == 8 || t.head_size == 128; };
  EXPECT_EQ(after(shrink_head_size, s, supported).head_size, 8);
  const auto wide = [](const Scenario& t) { return t.head_size % 32 == 0; };
  EXPECT_EQ(after(shrink_head_size, s, wide).head_size, 32);
}

TEST(HeadSizePass, LowersTheValueHeadSizeOfAttentionOnItsOwn) {
  Scenario s = plain_scenario({Past{{1}}});
  s.op = Operator::attention;
  s.opset = 23;
  s.head_size = 64;
  s.value_head_size = 64;
  const Scenario t =
      after(shrink_head_size, s, [](const Scenario& u) { return u.head_size == 64; });
  EXPECT_EQ(t.head_size, 64);
  EXPECT_EQ(t.value_head_size, 1);
}

TEST(MinimaPass, ReachesAllSmallestSizesInOneRun) {
  Scenario s = plain_scenario({Append{{3, 9}, {3, 9}, 0}});
  s.kv_heads = 4;
  s.query_heads = 8;
  s.head_size = s.value_head_size = 64;
  std::int64_t evaluations = 0;
  const Scenario t = after(one_shot_minima, s, always, &evaluations);
  EXPECT_EQ(evaluations, 1);
  EXPECT_EQ(t, plain_scenario({Append{{3}, {3}, 0}}));
}

TEST(TailPass, CutsToTheShortestFailingHead) {
  std::int64_t evaluations = 0;
  const Scenario t = after(
      cut_tail, appends(12), [](const Scenario& s) { return has_step(s, 5); }, &evaluations);
  EXPECT_EQ(t, appends(5));
  EXPECT_LE(evaluations, 6);
}

TEST(PastPass, TurnsEverythingBeforeTheLastStepIntoThePast) {
  std::int64_t evaluations = 0;
  const Scenario t = after(lead_in_to_past, appends(6), always, &evaluations);
  EXPECT_EQ(steps_text(t), "past 15; append 6");
  EXPECT_EQ(evaluations, 1);
}

TEST(PastPass, KeepsTheStepsThatTheFailureNeeds) {
  const auto fails = [](const Scenario& s) { return has_step(s, 4) && has_step(s, 6); };
  const Scenario once = after(lead_in_to_past, appends(6), fails);
  EXPECT_EQ(steps_text(once), "past 3; append 3; append 4; append 5; append 6");
  EXPECT_EQ(steps_text(after(lead_in_to_past, once, fails)),
            "past 6; append 4; append 5; append 6");
}

TEST(DeletePass, LeavesOnlyTheStepsThatTheFailureNeeds) {
  std::int64_t evaluations = 0;
  const Scenario t = after(
      delete_chunks, appends(16),
      [](const Scenario& s) { return has_step(s, 3) && has_step(s, 14); }, &evaluations);
  EXPECT_EQ(steps_text(t), "append 3; append 14");
  EXPECT_LE(evaluations, 32);
}

TEST(CancelPass, DropsARollbackAndItsTokensButKeepsGenerations) {
  const Scenario s = plain_scenario({Append{{5}, {5}, 0}, Rollback{{2}}, Append{{4}, {4}, 1},
                                     Rollback{{1}}, Append{{1}, {1}, 2}});
  const auto fails = [](const Scenario& t) {
    return std::get<Append>(t.steps.back()).generation == 2 &&
           largest(lengths_before(t).back()) == 7;
  };
  const Scenario t = after(cancel_rollbacks, s, fails);
  EXPECT_EQ(steps_text(t), "append 3; append 3; append 1");
}

TEST(MergePass, JoinsNeighboursOfOneKind) {
  const Scenario s = plain_scenario({Append{{5}, {5}, 0}, Append{{2}, {2}, 0}, Rollback{{1}},
                                     Rollback{{2}}, Append{{1}, {1}, 2}});
  EXPECT_EQ(steps_text(after(merge_neighbours, s, always)), "append 7; rollback 3; append 1");
}

TEST(RollbackPass, GoesDownToOne) {
  const Scenario s = plain_scenario({Past{{9}}, Rollback{{6}}, Append{{1}, {1}, 1}});
  const auto keeps_past = [](const Scenario& t) { return largest(tokens_of(t.steps[0])) == 9; };
  EXPECT_EQ(steps_text(after(shrink_rollbacks, s, keeps_past)), "past 9; rollback 1; append 1");
}

TEST(RollbackPass, LandsOnTheWindowEdge) {
  Scenario s = plain_scenario({Past{{20}}, Rollback{{17}}, Append{{1}, {1}, 1}});
  s.cache.window_size = 5;
  // Fails only where exactly one window is left, which no halving from 17 meets.
  const auto fails = [](const Scenario& t) {
    const auto lengths = lengths_before(t);
    return lengths[1][0] == 20 && (lengths[2][0] == 3 || lengths[2][0] == 5);
  };
  EXPECT_EQ(steps_text(after(shrink_rollbacks, s, fails)), "past 20; rollback 15; append 1");
}

TEST(RollbackPass, LandsOnEmpty) {
  const Scenario s = plain_scenario({Append{{9}, {9}, 0}, Rollback{{6}}, Append{{1}, {1}, 1}});
  const auto fails = [](const Scenario& t) {
    const auto lengths = lengths_before(t);
    return lengths[2][0] == 0 || (lengths[1][0] == 9 && lengths[2][0] == 3);
  };
  EXPECT_EQ(steps_text(after(shrink_rollbacks, s, fails)), "append 6; rollback 6; append 1");
}

TEST(TokenPass, LowersEntriesOnTheirOwn) {
  const Scenario s = plain_scenario({Append{{8, 8}, {8, 8}, 0}});
  const auto fails = [](const Scenario& t) {
    return t.batch == 2 && tokens_of(t.steps[0])[1] >= 3;
  };
  EXPECT_EQ(steps_text(after(shrink_tokens, s, fails)), "append [0, 3]");
}

TEST(QueryPass, SilencesEveryStepButTheLast) {
  std::int64_t evaluations = 0;
  const auto fails = [](const Scenario& t) {
    return largest(std::get<Append>(t.steps.back()).queries) > 0;
  };
  EXPECT_EQ(steps_text(after(shrink_queries, appends(3), fails, &evaluations)),
            "append 1 (no queries); append 2 (no queries); append 3");
  EXPECT_EQ(evaluations, 2);
}

TEST(QueryPass, LowersAttentionQueriesApartFromTokens) {
  Scenario s = plain_scenario({Append{{8}, {8}, 0}});
  s.op = Operator::attention;
  s.opset = 23;
  const auto fails = [](const Scenario& t) { return std::get<Append>(t.steps[0]).queries[0] >= 2; };
  EXPECT_EQ(steps_text(after(shrink_queries, s, fails)), "append 8 (2 queries)");
}

TEST(CoupledPass, MovesWindowCapacityAndLengthTogether) {
  Scenario s = plain_scenario({Past{{24}}, Append{{7}, {7}, 0}});
  s.cache = {LayoutKind::block, 30, 28};
  ASSERT_TRUE(testing::first_eviction_of_slack_two(s));
  const Scenario t = after(shrink_coupled, s, testing::first_eviction_of_slack_two);
  EXPECT_EQ(t.cache.window_size, 1);
  EXPECT_EQ(t.cache.capacity, 3);
  EXPECT_EQ(largest(lengths_before(t).back()), 4);
}

TEST(CoupledPass, MovesTwoStepsTogether) {
  const Scenario s = plain_scenario({Past{{20}}, Rollback{{20}}, Append{{1}, {1}, 1}});
  const auto fails = [](const Scenario& t) {
    return t.steps.size() == 3 && lengths_before(t)[2][0] == 0 && lengths_before(t)[1][0] >= 4;
  };
  EXPECT_EQ(steps_text(after(shrink_coupled, s, fails)), "past 4; rollback 4; append 1");
}

TEST(CoupledPass, TakesWholePeriodsOffALength) {
  Scenario s = plain_scenario({Past{{45}}});
  s.cache = {LayoutKind::block, 6, 4};  // Period 3.
  const auto fails = [](const Scenario& t) {
    return t.cache.capacity == 6 && t.cache.window_size == 4 && lengths_before(t)[1][0] % 3 == 0 &&
           lengths_before(t)[1][0] > 6;
  };
  EXPECT_EQ(steps_text(after(shrink_coupled, s, fails)), "past 9");
}

TEST(CoupledPass, HalvesEverything) {
  Scenario s = plain_scenario({Past{{64}}});
  s.cache = {LayoutKind::block, 32, 16};
  const auto fails = [](const Scenario& t) {
    return t.cache.capacity == 2 * *t.cache.window_size &&
           largest(lengths_before(t)[1]) == 2 * t.cache.capacity;
  };
  const Scenario t = after(shrink_coupled, s, fails);
  EXPECT_EQ(t.cache, (model::CacheSpec{LayoutKind::block, 2, 1}));
  EXPECT_EQ(steps_text(t), "past 4");
}

TEST(GuidedJump, GoesSinglyWhenTheWholeJumpPasses) {
  Scenario s = plain_scenario({Append{{5, 6}, {5, 6}, 0}, Append{{1, 2}, {1, 2}, 0}});
  s.kv_heads = s.query_heads = 4;
  const StillFails fails = [](const Scenario& t) { return t.batch == 2; };
  Attempt attempt(s, fails, {});
  guided_jump(attempt, {0, 1, 3});
  ASSERT_EQ(attempt.trail().size(), 2u);
  EXPECT_EQ(attempt.trail()[0].pass, "guided.step");
  EXPECT_EQ(attempt.trail()[1].pass, "guided.heads");
  EXPECT_EQ(attempt.current().kv_heads, 1);
  EXPECT_EQ(steps_text(attempt.current()), "append [5, 6]");
}

}  // namespace
}  // namespace kvcheck::shrinkers
