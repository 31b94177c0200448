// Edits of steps keep lengths, generations and the tie of queries to tokens.
#include "shrinkers/edits.h"

#include <gtest/gtest.h>

#include "tests/shrinkers/random_scenario.h"

namespace kvcheck::shrinkers {
namespace {

using model::Append;
using model::Operator;
using model::Past;
using model::Rollback;
using model::Scenario;
using testing::plain_scenario;
using testing::random_scenario;
using testing::steps_text;

std::vector<std::int64_t> final_lengths(const Scenario& s) { return lengths_before(s).back(); }

TEST(Edits, LengthsFollowAppendsAndRollbacks) {
  const Scenario s = plain_scenario({Past{{2, 0}}, Append{{3, 1}, {3, 1}, 0}, Rollback{{4, 1}}});
  EXPECT_EQ(lengths_before(s),
            (std::vector<std::vector<std::int64_t>>{{0, 0}, {2, 0}, {5, 1}, {1, 0}}));
  EXPECT_EQ(longest_length(s), 5);
}

TEST(Edits, KeptEntriesBringTheirOwnLengths) {
  const Scenario s = plain_scenario({Append{{3, 1, 7}, {3, 1, 7}, 0}, Rollback{{1, 0, 5}}});
  const Scenario kept = keep_entries(s, {0, 2});
  EXPECT_EQ(kept.batch, 2);
  EXPECT_EQ(steps_text(kept), "append [3, 7]; rollback [1, 5]");
  EXPECT_EQ(steps_text(keep_entries(s, {1})), "append 1; rollback 0");
}

TEST(Edits, TokensCarryTheirQueriesWithThem) {
  model::Step tied = Append{{5, 2}, {5, 2}, 0};
  cap_tokens(tied, 3);
  EXPECT_EQ(tied, model::Step(Append{{3, 2}, {3, 2}, 0}));
  model::Step silent = Append{{5, 2}, {0, 0}, 0};
  cap_tokens(silent, 3);
  EXPECT_EQ(silent, model::Step(Append{{3, 2}, {0, 0}, 0}));
}

TEST(Edits, StepsBecomeThePastTheyReach) {
  const Scenario s = plain_scenario(
      {Append{{5}, {5}, 0}, Append{{3}, {3}, 0}, Rollback{{2}}, Append{{4}, {4}, 1}});
  EXPECT_EQ(steps_text(steps_to_past(s, 3)), "past 6; append 4");
  EXPECT_EQ(steps_text(steps_to_past(s, 1)), "past 5; append 3; rollback 2; append 4");
}

TEST(Edits, StepsThatReachNothingLeaveNoPast) {
  const Scenario s = plain_scenario({Append{{2}, {2}, 0}, Rollback{{2}}, Append{{4}, {4}, 1}});
  EXPECT_EQ(steps_text(steps_to_past(s, 2)), "append 4");
}

TEST(Edits, CancelledRollbackTakesItsTokensOffTheNewestAppends) {
  const Scenario s = plain_scenario(
      {Append{{5}, {5}, 0}, Append{{3}, {3}, 0}, Rollback{{4}}, Append{{2}, {2}, 1}});
  const Scenario cancelled = cancel_rollback(s, 2);
  EXPECT_EQ(steps_text(cancelled), "append 4; append 2");
  // The replacement keeps its own content, which its generation decides.
  EXPECT_EQ(std::get<Append>(cancelled.steps[1]).generation, 1);
}

TEST(Edits, CancelledRollbackSkipsTokensThatAnEarlierOneDropped) {
  const Scenario s =
      plain_scenario({Append{{2}, {2}, 0}, Append{{3}, {3}, 0}, Rollback{{3}}, Rollback{{1}}});
  EXPECT_EQ(steps_text(cancel_rollback(s, 3)), "append 1; append 3; rollback 3");
}

TEST(Edits, CancellingKeepsEveryFinalLength) {
  int cancelled = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const Scenario s = random_scenario(Operator::gqa, seed);
    for (std::size_t i = 0; i < s.steps.size(); ++i) {
      if (!std::holds_alternative<Rollback>(s.steps[i])) continue;
      const Scenario edited = cancel_rollback(s, i);
      EXPECT_EQ(final_lengths(edited), final_lengths(s));
      EXPECT_EQ(model::normalise(edited).steps, edited.steps) << "a later rollback was clipped";
      ++cancelled;
    }
  }
  EXPECT_GT(cancelled, 100);
}

TEST(Edits, MergingKeepsEveryFinalLength) {
  int merged = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const Scenario s = random_scenario(seed % 2 ? Operator::gqa : Operator::attention, seed);
    for (std::size_t i = 0; i < s.steps.size(); ++i) {
      const auto edited = merge_steps(s, i);
      if (!edited) continue;
      EXPECT_EQ(edited->steps.size(), s.steps.size() - 1);
      EXPECT_EQ(final_lengths(*edited), final_lengths(s));
      ++merged;
    }
  }
  EXPECT_GT(merged, 100);
}

TEST(Edits, MergedGqaAppendAsksForAllTokensOrNone) {
  const auto merged = [](const Append& a, const Append& b) {
    return steps_text(merge_steps(plain_scenario({a, b}), 0).value());
  };
  EXPECT_EQ(merged({{2}, {2}, 0}, {{1}, {1}, 0}), "append 3");
  EXPECT_EQ(merged({{2}, {0}, 0}, {{1}, {1}, 0}), "append 3");
  EXPECT_EQ(merged({{2}, {2}, 0}, {{1}, {0}, 0}), "append 3");
  EXPECT_EQ(merged({{2}, {0}, 0}, {{1}, {0}, 0}), "append 3 (no queries)");
}

TEST(Edits, AnAppendDoesNotMergeWithARollback) {
  const Scenario s = plain_scenario({Append{{2}, {2}, 0}, Rollback{{1}}, Rollback{{1}}});
  EXPECT_FALSE(merge_steps(s, 0).has_value());
  EXPECT_FALSE(merge_steps(s, 2).has_value());
  EXPECT_EQ(steps_text(merge_steps(s, 1).value()), "append 2; rollback 2");
}

TEST(Edits, LandingOnEmptyDropsTheOldestTokens) {
  const Scenario s = plain_scenario({Append{{4}, {4}, 0}, Append{{3}, {3}, 0}, Rollback{{5}}});
  const Scenario landed = land_on_empty(s, 2);
  EXPECT_EQ(steps_text(landed), "append 2; append 3; rollback 5");
  EXPECT_EQ(final_lengths(landed)[0], 0);
}

TEST(Edits, GenerationsCountTheRollbacksBefore) {
  Scenario s = plain_scenario({Append{{4}, {4}, 0}, Rollback{{1}}, Append{{1}, {1}, 1}});
  EXPECT_EQ(other_generations(s), 0);
  s = remove_steps(s, 1, 1);
  EXPECT_EQ(other_generations(s), 1);
  EXPECT_EQ(other_generations(default_generations(s)), 0);
  EXPECT_EQ(std::get<Append>(default_generations(s).steps[1]).generation, 0);
}

}  // namespace
}  // namespace kvcheck::shrinkers
