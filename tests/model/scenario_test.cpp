// Repair and description of scenarios.
#include "model/scenario.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "model/scenario_json.h"
#include "tests/model/random_scenario.h"

namespace kvcheck::model {
namespace {

using Counts = std::vector<std::int64_t>;

std::string refusals_text(const Scenario& s) {
  std::string text;
  for (const Refusal& refusal : validate(s)) text += refusal.message() + "\n";
  return text;
}

Scenario one_step(Step step) {
  Scenario s;
  s.steps.push_back(std::move(step));
  return s;
}

TEST(Normalise, MakesEveryWildScenarioValidAndIsIdempotent) {
  ScenarioSource source(1, true);
  int was_invalid = 0;
  for (int i = 0; i < 4000; ++i) {
    const Scenario wild = source.wild();
    was_invalid += !validate(wild).empty();
    const Scenario repaired = normalise(wild);
    ASSERT_EQ(refusals_text(repaired), "") << "case " << i << "\n"
                                           << canonical_text(wild).substr(0, 2000);
    ASSERT_TRUE(normalise(repaired) == repaired) << "case " << i << "\n"
                                                 << canonical_text(wild).substr(0, 2000);
  }
  EXPECT_GT(was_invalid, 2000);
}

TEST(Normalise, LeavesValidScenariosUnchanged) {
  ScenarioSource source(2, true);
  int valid = 0, invalid = 0;
  for (int i = 0; i < 4000; ++i) {
    // Changed after the repair, so that validity does not depend on what is tested.
    const Scenario s = source.nudged();
    if (!validate(s).empty()) {
      ++invalid;
      continue;
    }
    ++valid;
    ASSERT_TRUE(normalise(s) == s) << canonical_text(s);
  }
  EXPECT_GT(valid, 1000);
  EXPECT_GT(invalid, 1000);
}

TEST(Normalise, ClipsRollbacksToTheLiveLength) {
  Scenario s;
  s.steps = {Append{{3}, {3}, 0}, Rollback{{9}}, Append{{1}, {1}, 1}};
  s = normalise(s);
  EXPECT_EQ(std::get<Rollback>(s.steps[1]).tokens, (Counts{3}));
}

TEST(Normalise, RaisesCapacityToTheWindowAndToTheLengths) {
  Scenario block = one_step(Append{{3}, {3}, 0});
  block.cache = {LayoutKind::block, 2, 5};
  EXPECT_EQ(normalise(block).cache.capacity, 5);
  Scenario full = one_step(Append{{9}, {9}, 0});
  full.cache.capacity = 4;
  EXPECT_EQ(normalise(full).cache.capacity, 9);
  full.cache.capacity = 0;
  EXPECT_EQ(normalise(full).cache.capacity, 0);
}

TEST(Normalise, RepairsDivisibilityOfHeads) {
  Scenario s = one_step(Append{{1}, {1}, 0});
  s.query_heads = 5;
  s.kv_heads = 2;
  EXPECT_EQ(normalise(s).query_heads, 6);
  s.query_heads = 4096;
  s.kv_heads = 4095;
  EXPECT_EQ(normalise(s).query_heads, 4095);
}

TEST(Normalise, BroadcastsShortLists) {
  Scenario s = one_step(Append{{2, 4}, {2}, 0});
  s.batch = 4;
  s = normalise(s);
  EXPECT_EQ(std::get<Append>(s.steps[0]).tokens, (Counts{2, 4, 4, 4}));
  EXPECT_EQ(std::get<Append>(s.steps[0]).queries, (Counts{2, 4, 4, 4}));
}

TEST(Normalise, DropsStepsWithoutEffect) {
  Scenario s;
  s.steps = {Append{{0}, {0}, 0}, Append{{2}, {2}, 0}, Rollback{{0}}, Past{{3}},
             Append{{1}, {1}, 0}};
  s = normalise(s);
  ASSERT_EQ(s.steps.size(), 2u);
  EXPECT_EQ(std::get<Append>(s.steps[0]).tokens, (Counts{2}));
  EXPECT_EQ(std::get<Append>(s.steps[1]).tokens, (Counts{1}));
}

TEST(Normalise, GivesAScenarioWithoutStepsOneToken) {
  const Scenario s = normalise(Scenario{});
  ASSERT_EQ(s.steps.size(), 1u);
  EXPECT_EQ(std::get<Append>(s.steps[0]), (Append{{1}, {1}, 0}));
}

TEST(Normalise, KeepsLengthsWithinTheLimit) {
  Scenario s;
  s.cache = {LayoutKind::block, 6, 4};
  s.steps = {Past{{kMaxLength - 1}}, Append{{5}, {5}, 0}, Append{{5}, {5}, 0}};
  s = normalise(s);
  ASSERT_EQ(s.steps.size(), 2u);
  EXPECT_EQ(std::get<Append>(s.steps[1]).tokens, (Counts{1}));
  EXPECT_EQ(std::get<Append>(s.steps[1]).queries, (Counts{1}));
}

TEST(Normalise, CutsStepsBeyondTheLimitFromTheEnd) {
  Scenario s;
  s.batch = kMaxShape;
  const std::size_t most = kMaxStepEntries / kMaxShape;
  s.steps.assign(most, Append{{1}, {1}, 0});
  s.steps.push_back(Append{{9}, {9}, 0});
  s = normalise(s);
  EXPECT_EQ(s.steps.size(), most);
  EXPECT_EQ(std::get<Append>(s.steps.back()).tokens.front(), 1);
  EXPECT_EQ(refusals_text(s), "");
}

TEST(Normalise, GivesAMaskOverRaggedEntriesRankFour) {
  Scenario s = one_step(Append{{1, 2}, {1, 1}, 0});
  s.op = Operator::attention;
  s.batch = 2;
  s.nonpad_kv_seqlen = true;
  s.mask.kind = MaskKind::boolean;
  EXPECT_EQ(normalise(s).mask.rank, 4);
  std::get<Append>(s.steps[0]).tokens = {2, 2};
  EXPECT_EQ(normalise(s).mask.rank, 2);
}

TEST(MaxRows, DividesTheLimitByOneRowOfEveryEntry) {
  Scenario s;
  s.batch = 2;
  s.query_heads = 8;
  s.kv_heads = 4;
  s.head_size = 64;
  s.value_head_size = 128;
  EXPECT_EQ(max_rows(s), kMaxElements / (2 * 8 * 128));
  s.batch = s.query_heads = s.value_head_size = kMaxShape;
  EXPECT_EQ(max_rows(s), 0);
}

TEST(MaskFits, CountsTheDimensionsThatTheRankHas) {
  Scenario s;
  s.op = Operator::attention;
  s.opset = 24;
  s.query_heads = 4;
  s.batch = 2;
  const std::int64_t n = 16384;  // n * n = kMaxElements
  s.steps = {Append{{n, n}, {n, n}, 0}};
  EXPECT_TRUE(mask_fits(s));
  s.mask.kind = MaskKind::boolean;
  EXPECT_TRUE(mask_fits(s));
  s.mask.rank = 3;
  EXPECT_FALSE(mask_fits(s));
  s.steps = {Append{{n / 2, n / 2}, {n / 2, n / 2}, 0}};
  EXPECT_TRUE(mask_fits(s));
  s.mask.rank = 4;
  EXPECT_FALSE(mask_fits(s));
  s.steps = {Append{{n / 4, n / 4}, {n / 2, n / 2}, 0}};
  EXPECT_TRUE(mask_fits(s));
  s.nonpad_kv_seqlen = true;
  s.cache.capacity = n;  // The mask is as wide as the buffer.
  EXPECT_FALSE(mask_fits(s));
}

TEST(Describe, SaysWhatAStepDoes) {
  EXPECT_EQ(describe(Append{{3}, {3}, 0}), "append 3");
  EXPECT_EQ(describe(Append{{2}, {1}, 0}), "append 2 (1 query)");
  EXPECT_EQ(describe(Append{{2}, {0}, 0}), "append 2 (no queries)");
  EXPECT_EQ(describe(Append{{2}, {4}, 0}), "append 2 (4 queries)");
  EXPECT_EQ(describe(Append{{2, 3}, {2, 3}, 0}), "append [2, 3]");
  EXPECT_EQ(describe(Append{{2, 3}, {1, 1}, 0}), "append [2, 3] (1 query)");
  EXPECT_EQ(describe(Rollback{{2, 2}}), "rollback 2");
  EXPECT_EQ(describe(Past{{5, 0}}), "past [5, 0]");
  EXPECT_EQ(describe(Past{{}}), "past nothing");
}

TEST(Names, AreThoseOfTheTextForm) {
  EXPECT_EQ(to_string(Operator::gqa), "gqa");
  EXPECT_EQ(to_string(Operator::attention), "attention");
  EXPECT_EQ(to_string(LayoutKind::full), "full");
  EXPECT_EQ(to_string(LayoutKind::block), "block");
  EXPECT_EQ(to_string(FillKind::random), "random");
  EXPECT_EQ(to_string(FillKind::needles), "needles");
  EXPECT_EQ(to_string(FillKind::position_code), "position_code");
  EXPECT_EQ(to_string(FillKind::position_block), "position_block");
  EXPECT_EQ(to_string(FillKind::position_digits), "position_digits");
  EXPECT_EQ(to_string(FillKind::extreme), "extreme");
  EXPECT_EQ(to_string(FillKind::ties), "ties");
  EXPECT_EQ(to_string(FillKind::cancelling), "cancelling");
  EXPECT_EQ(to_string(FillKind::selection), "selection");
  EXPECT_EQ(to_string(FillKind::integers), "integers");
  EXPECT_EQ(to_string(Poison::zero), "zero");
  EXPECT_EQ(to_string(Poison::finite), "finite");
  EXPECT_EQ(to_string(Poison::huge), "huge");
  EXPECT_EQ(to_string(Poison::nan), "nan");
  EXPECT_EQ(to_string(MaskKind::none), "none");
  EXPECT_EQ(to_string(MaskKind::boolean), "boolean");
  EXPECT_EQ(to_string(MaskKind::additive), "additive");
}

}  // namespace
}  // namespace kvcheck::model
