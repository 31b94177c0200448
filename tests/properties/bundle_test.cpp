// Runs that differ in many ways at once: what they settle, and what a difference leads to.
#include "properties/bundle.h"

#include <gtest/gtest.h>

#include "model/scenario_json.h"
#include "tests/properties/counting_target.h"
#include "tests/properties/promise_breaker.h"
#include "tests/properties/reference_target.h"

namespace kvcheck::properties {
namespace {

/// Every property with an axis applies: two entries, a window, a rollback, several tokens a step.
model::Scenario rich() {
  return model::parse_scenario(R"({"schema":1,"operator":"gqa","head_size":8,"batch":2,
      "cache":{"layout":"block","capacity":7,"window_size":3},"fill":{"kind":"random","seed":5},
      "steps":[{"append":6},{"rollback":2},{"append":2}]})");
}

std::vector<const Property*> on_axes() {
  std::vector<const Property*> result;
  for (const Property& property : catalog()) {
    if (property.axis.run != Axis::Run::none) result.push_back(&property);
  }
  return result;
}

TEST(Bundle, SettlesEveryAxisOfAHealthyTargetWithFewRuns) {
  CountingTarget target(make_promise_breaker({}));
  Case c(target, rich(), Case::Mode::bundled);
  for (const Property* property : on_axes()) {
    if (!property->inapplicable(c.scenario(), target.capabilities()).empty()) continue;
    EXPECT_TRUE(c.bundle().settles(*property)) << property->id;
    EXPECT_EQ(judge(c, *property).verdict, Verdict::passed) << property->id;
  }
  EXPECT_FALSE(c.bundle().unexplained().has_value());
  // The case, one run of its own, and one for each entry alone.
  EXPECT_EQ(target.opened, 4);
}

/// Nothing is apart here, so that one run shows drafts as well.
TEST(Bundle, DraftsNeedNoRunOfTheirOwn) {
  const auto scenario = model::parse_scenario(R"({"schema":1,"operator":"gqa","head_size":8,
      "cache":{"layout":"full","capacity":12},"fill":{"kind":"random","seed":5},
      "steps":[{"append":4},{"append":2}]})");
  CountingTarget target(make_promise_breaker({}));
  Case c(target, scenario, Case::Mode::bundled);
  EXPECT_TRUE(c.bundle().settles(*find_property("cache.drafts")));
  EXPECT_TRUE(c.bundle().settles(*find_property("cache.split_invariance")));
  EXPECT_EQ(target.opened, 2);
  EXPECT_GT(target.rollbacks, 0);
}

/// Of entries that run alone one has drafts.
TEST(Bundle, OneOfSeveralRunsHasDrafts) {
  const auto scenario = model::parse_scenario(R"({"schema":1,"operator":"gqa","head_size":8,
      "batch":5,"cache":{"layout":"full","capacity":12},"fill":{"kind":"random","seed":5},
      "steps":[{"append":4}]})");
  CountingTarget target(make_promise_breaker({}));
  Case c(target, scenario, Case::Mode::bundled);
  EXPECT_TRUE(c.bundle().settles(*find_property("cache.drafts")));
  EXPECT_TRUE(c.bundle().settles(*find_property("batch.no_company")));
  EXPECT_EQ(target.opened, 7);
  // A draft of three tokens goes back in three parts at most.
  EXPECT_GE(target.rollbacks, 1);
  EXPECT_LE(target.rollbacks, 3);
}

/// A split that leaves one step has none to ask a refusal before; the second run has.
TEST(Bundle, WhatFindsNoPlaceInTheFirstRunJoinsTheSecond) {
  for (int seed = 0; seed < 20; ++seed) {
    const auto scenario = model::parse_scenario(
        R"({"schema":1,"operator":"gqa","head_size":8,"cache":{"layout":"block","capacity":4,
        "window_size":3},"fill":{"kind":"random","seed":)" +
        std::to_string(seed) + R"(},"steps":[{"append":2},{"append":1}]})");
    CountingTarget target(make_promise_breaker({}));
    Case c(target, scenario, Case::Mode::bundled);
    EXPECT_TRUE(c.bundle().settles(*find_property("target.refusal_keeps_state"))) << seed;
    EXPECT_EQ(target.opened, 3) << seed;
  }
}

TEST(Bundle, JudgesAloneWhereTheModeSaysSo) {
  CountingTarget target(make_promise_breaker({}));
  Case c(target, rich());
  EXPECT_EQ(judge(c, *find_property("target.thread_count")).verdict, Verdict::passed);
  EXPECT_EQ(target.opened, 5);  // The case and 1, 2, 3 and 8 threads.
}

TEST(Bundle, TracesADifferenceToItsProperty) {
  const auto target = make_promise_breaker(Promise::isa);
  Case c(*target, rich(), Case::Mode::bundled);
  std::vector<std::string> failed;
  for (const Property& property : catalog()) {
    if (!property.inapplicable(c.scenario(), target->capabilities()).empty()) continue;
    if (judge(c, property).verdict == Verdict::failed) failed.push_back(property.id);
  }
  EXPECT_EQ(failed, std::vector<std::string>{"target.instruction_set"});
}

TEST(Bundle, ADifferenceThatNoPropertyShowsAloneIsAFindingToo) {
  const auto target = make_promise_breaker(Promise::combined);
  Case c(*target, rich(), Case::Mode::bundled);
  std::vector<std::string> failed;
  std::string text;
  for (const Property& property : catalog()) {
    if (!property.inapplicable(c.scenario(), target->capabilities()).empty()) continue;
    const Judgement judgement = judge(c, property);
    if (judgement.verdict != Verdict::failed) continue;
    failed.push_back(property.id);
    text = judgement.text;
    EXPECT_EQ(judgement.kind, Kind::bits_difference);
  }
  EXPECT_EQ(failed, std::vector<std::string>{"target.combined_ways"});
  EXPECT_NE(text.find("target.instruction_set"), std::string::npos) << text;
  EXPECT_NE(text.find("holds alone"), std::string::npos) << text;
}

TEST(Bundle, LeavesWhatDoesNotJoinToBeJudgedAlone) {
  // Needles of a query point at tokens that were rolled back, so its data would change.
  model::Scenario scenario = rich();
  scenario.fill.kind = model::FillKind::needles;
  const auto target = make_promise_breaker(Promise::rollback);
  Case c(*target, scenario, Case::Mode::bundled);
  const Property& property = *find_property("cache.rollback_exactness");
  EXPECT_FALSE(c.bundle().settles(property));
  EXPECT_EQ(judge(c, property).verdict, Verdict::failed);
  const auto healthy = make_promise_breaker({});
  Case d(*healthy, scenario, Case::Mode::bundled);
  EXPECT_FALSE(d.bundle().settles(property));
  EXPECT_TRUE(d.bundle().settles(*find_property("batch.no_company")));
}

TEST(Bundle, ComparesWithinTheBoundWhereNoBitsArePromised) {
  const auto loose = make_promise_breaker(Promise::split, "split_bits");
  Case c(*loose, rich(), Case::Mode::bundled);
  EXPECT_TRUE(c.bundle().settles(*find_property("cache.split_invariance")));
  const auto strict = make_promise_breaker(Promise::split);
  Case d(*strict, rich(), Case::Mode::bundled);
  EXPECT_FALSE(d.bundle().settles(*find_property("cache.split_invariance")));
}

TEST(Bundle, ChoicesAreThoseOfTheScenarioAndTheProperty) {
  const auto first = [](std::uint64_t seed, const char* id) {
    model::Scenario scenario = rich();
    scenario.fill.seed = seed;
    return axis_draw(scenario, id).bits();
  };
  EXPECT_EQ(first(1, "a"), first(1, "a"));
  EXPECT_NE(first(1, "a"), first(2, "a"));
  EXPECT_NE(first(1, "a"), first(1, "b"));
}

TEST(Bundled, TheOrderOfTheSoftcapIsSeenInOneStep) {
  const Property& property = *find_property("softcap.order");
  for (int seed = 0; seed < 6; ++seed) {
    const auto scenario = model::parse_scenario(R"({"schema":1,"operator":"gqa","head_size":8,
        "cache":{"layout":"full","capacity":12},"softcap":20,"fill":{"kind":"needles","seed":)" +
                                                std::to_string(seed) + R"(},
        "steps":[{"append":4},{"append":3},{"append":1},{"append":4}]})");
    CountingTarget healthy(make_reference_target());
    Case c(healthy, scenario, Case::Mode::bundled);
    const Judgement holds = judge(c, property);
    EXPECT_EQ(holds.verdict, Verdict::passed) << holds.text;
    EXPECT_GT(holds.max_ratio, 0);
    EXPECT_EQ(healthy.opened, 1);
    for (const char* mistake : {"cap_after_bias", "cap_before_scale"}) {
      const auto target = make_reference_target(mistake);
      Case d(*target, scenario, Case::Mode::bundled);
      const Judgement judgement = judge(d, property);
      EXPECT_EQ(judgement.verdict, Verdict::failed) << mistake << ", seed " << seed;
      EXPECT_NE(judgement.text.find("with softcap 0.5"), std::string::npos) << judgement.text;
    }
  }
}

/// Rows alone are no reason for one more run of a random scenario.
TEST(Bundled, TokensInFrontAreRunWhereAQueryLeavesThemOut) {
  const auto of = [](const char* steps) {
    return model::parse_scenario(R"({"schema":1,"operator":"gqa","head_size":8,
        "cache":{"layout":"block","capacity":7,"window_size":3},"steps":)" +
                                 std::string(steps) + "}");
  };
  const Property& property = *find_property("positions.out_of_sight");
  const auto judged = [&](const char* steps, Case::Mode mode, int& opened) {
    CountingTarget target(make_promise_breaker({}));
    Case c(target, of(steps), mode);
    const Verdict verdict = judge(c, property).verdict;
    opened = target.opened;
    return verdict;
  };
  int opened = 0;
  EXPECT_EQ(judged(R"([{"append":2}])", Case::Mode::bundled, opened), Verdict::skipped);
  EXPECT_EQ(opened, 1);
  EXPECT_EQ(judged(R"([{"append":2}])", Case::Mode::alone, opened), Verdict::skipped);
  EXPECT_EQ(opened, 2);
  EXPECT_EQ(judged(R"([{"append":3}])", Case::Mode::bundled, opened), Verdict::passed);
  EXPECT_EQ(opened, 2);
}

}  // namespace
}  // namespace kvcheck::properties
