// An attempt runs only what is valid and smaller, and lowers numbers with few runs.
#include "shrinkers/attempt.h"

#include <gtest/gtest.h>

#include "tests/shrinkers/random_scenario.h"

namespace kvcheck::shrinkers {
namespace {

using model::Append;
using model::Past;
using model::Scenario;
using testing::plain_scenario;

const Number kPast{[](const Scenario& s) { return std::get<Past>(s.steps[0]).tokens[0]; },
                   [](Scenario& s, std::int64_t n) { std::get<Past>(s.steps[0]).tokens[0] = n; }};

TEST(Attempt, RunsNothingThatIsNotSmaller) {
  const StillFails fails = [](const Scenario&) { return true; };
  Attempt attempt(plain_scenario({Past{{3}}}), fails, {});
  Scenario larger = attempt.current();
  larger.batch = 2;
  EXPECT_FALSE(attempt.propose(larger));
  EXPECT_FALSE(attempt.propose(attempt.current()));
  EXPECT_EQ(attempt.evaluations(), 0);
}

TEST(Attempt, RepairsACandidateBeforeItRuns) {
  const StillFails fails = [](const Scenario& s) { return model::validate(s).empty(); };
  Scenario start = plain_scenario({Past{{3}}, model::Rollback{{3}}, Append{{1}, {1}, 1}});
  Attempt attempt(start, fails, {});
  attempt.enter("tokens");
  start.steps[0] = Past{{2}};
  ASSERT_TRUE(attempt.propose(start));
  EXPECT_EQ(testing::steps_text(attempt.current()), "past 2; rollback 2; append 1");
  ASSERT_EQ(attempt.trail().size(), 1u);
  EXPECT_EQ(attempt.trail()[0].pass, "tokens");
  EXPECT_EQ(attempt.trail()[0].change, "steps[0].tokens 3 -> 2, steps[1].tokens 3 -> 2");
}

TEST(Attempt, RunsAScenarioOnce) {
  int calls = 0;
  const StillFails fails = [&](const Scenario&) {
    ++calls;
    return false;
  };
  Attempt attempt(plain_scenario({Past{{3}}}), fails, {});
  const Scenario smaller_one = plain_scenario({Past{{2}}});
  EXPECT_FALSE(attempt.propose(smaller_one));
  EXPECT_FALSE(attempt.propose(smaller_one));
  EXPECT_EQ(calls, 1);
}

TEST(Lower, FindsAThresholdInLogarithmicallyManyRuns) {
  for (const std::int64_t threshold : {1, 2, 3, 17, 500, 999, 1000}) {
    const StillFails fails = [&](const Scenario& s) { return kPast.read(s) >= threshold; };
    Attempt attempt(plain_scenario({Past{{1000}}}), fails, {});
    lower(attempt, kPast, 1);
    EXPECT_EQ(kPast.read(attempt.current()), threshold);
    EXPECT_LE(attempt.evaluations(), 12);
  }
}

TEST(Lower, IsStuckAfterThreeRuns) {
  const StillFails fails = [](const Scenario& s) { return kPast.read(s) == 1000; };
  Attempt attempt(plain_scenario({Past{{1000}}}), fails, {});
  lower(attempt, kPast, 1);
  EXPECT_EQ(attempt.evaluations(), 3);
}

TEST(Lower, JumpsToTheFloorAtOnce) {
  const StillFails fails = [](const Scenario&) { return true; };
  Attempt attempt(plain_scenario({Past{{1000}}}), fails, {});
  lower(attempt, kPast, 4);
  EXPECT_EQ(kPast.read(attempt.current()), 4);
  EXPECT_EQ(attempt.evaluations(), 1);
}

TEST(Lower, GetsPastAGapByHalving) {
  // Only even lengths fail, so one lower passes.
  const StillFails fails = [](const Scenario& s) {
    return kPast.read(s) % 2 == 0 && kPast.read(s) >= 10;
  };
  Attempt attempt(plain_scenario({Past{{800}}}), fails, {});
  lower(attempt, kPast, 1);
  EXPECT_LE(kPast.read(attempt.current()), 400);
}

}  // namespace
}  // namespace kvcheck::shrinkers
