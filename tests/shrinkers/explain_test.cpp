// The explanation names the fields that matter and the nearest scenario that passes.
#include "shrinkers/explain.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "model/scenario_json.h"
#include "tests/shrinkers/predicates.h"
#include "tests/shrinkers/random_scenario.h"

namespace kvcheck::shrinkers {
namespace {

using model::Append;
using model::Operator;
using model::Past;
using model::Scenario;
using testing::plain_scenario;

/// The minimal scenario of decode_ignores_causal.
Scenario one_query_behind_a_past() {
  Scenario s = plain_scenario({Past{{1}}, Append{{2}, {1}, 0}});
  s.op = Operator::attention;
  s.opset = 23;
  return s;
}

FieldVerdict verdict(const Explanation& explanation, const std::string& field) {
  for (const FieldVerdict& each : explanation.fields) {
    if (each.field == field) return each;
  }
  ADD_FAILURE() << "no verdict for " << field;
  return {};
}

TEST(Explain, TellsWhatMattersFromWhatDoesNot) {
  const Explanation e = explain(one_query_behind_a_past(), testing::decode_ignores_causal);
  EXPECT_TRUE(verdict(e, "causal").matters);
  EXPECT_EQ(verdict(e, "causal").tried, "false");
  EXPECT_TRUE(verdict(e, "steps[1].tokens").matters);
  EXPECT_EQ(verdict(e, "steps[1].tokens").value, "2");
  EXPECT_EQ(verdict(e, "steps[1].tokens").tried, "1, 3, 4");
  EXPECT_EQ(verdict(e, "steps[1].tokens").passing, "1");
  EXPECT_EQ(verdict(e, "steps[1].queries").passing, "0, 2");
  EXPECT_TRUE(verdict(e, "steps[0]").matters);
  for (const char* any :
       {"batch", "query_heads", "head_size", "element_type", "fill.kind", "fill.seed", "poison",
        "opset", "mask.kind", "scale", "steps[0].tokens"}) {
    EXPECT_FALSE(verdict(e, any).matters) << any;
    EXPECT_FALSE(verdict(e, any).tried.empty()) << any;
    EXPECT_TRUE(verdict(e, any).passing.empty()) << any;
  }
}

TEST(Explain, NearestPassingIsOneSmallStepAway) {
  const Explanation e = explain(one_query_behind_a_past(), testing::decode_ignores_causal);
  ASSERT_TRUE(e.nearest_passing.has_value());
  EXPECT_EQ(e.nearest_change, "steps[1].tokens 2 -> 1");
  EXPECT_EQ(testing::steps_text(*e.nearest_passing), "past 1; append 1");
  EXPECT_FALSE(testing::decode_ignores_causal(*e.nearest_passing));
}

TEST(Explain, WindowOfFourFailsAndFivePasses) {
  Scenario s = plain_scenario({Past{{9}}, Append{{1}, {1}, 0}});
  s.cache = {model::LayoutKind::block, 6, 4};
  const auto fails = [](const Scenario& t) {
    return t.cache.window_size && *t.cache.window_size <= 4;
  };
  const Explanation e = explain(s, fails);
  EXPECT_EQ(e.nearest_change, "cache.window_size 4 -> 5");
  EXPECT_TRUE(verdict(e, "cache.window_size").matters);
  EXPECT_FALSE(verdict(e, "cache.capacity").matters);
  EXPECT_FALSE(verdict(e, "steps[0].tokens").matters);
}

TEST(Explain, FindsNoPassingNeighbourWhereEverythingFails) {
  const Explanation e = explain(one_query_behind_a_past(), [](const Scenario&) { return true; });
  EXPECT_FALSE(e.nearest_passing.has_value());
  EXPECT_TRUE(e.nearest_change.empty());
  EXPECT_TRUE(std::none_of(e.fields.begin(), e.fields.end(),
                           [](const FieldVerdict& each) { return each.matters; }));
}

TEST(Explain, ARemovedStepIsNamed) {
  const Scenario s = plain_scenario({Past{{3}}, Append{{2}, {2}, 0}});
  const auto fails = [](const Scenario& t) {
    return !t.steps.empty() && std::holds_alternative<Past>(t.steps[0]);
  };
  const Explanation e = explain(s, fails);
  EXPECT_EQ(e.nearest_change, "steps[0] (past 3) removed");
}

TEST(Explain, KeepsToItsBudget) {
  std::int64_t calls = 0;
  const auto fails = [&](const Scenario& s) {
    ++calls;
    return testing::decode_ignores_causal(s);
  };
  const Explanation e = explain(one_query_behind_a_past(), fails, 5);
  EXPECT_EQ(calls, 5);
  EXPECT_EQ(e.evaluations, 5);
  // The smallest changes come first, so even five runs find the nearest one.
  EXPECT_EQ(e.nearest_change, "steps[1].tokens 2 -> 1");
  EXPECT_TRUE(verdict(e, "poison").tried.empty());
}

TEST(Explain, AsksNothingTwiceAndNothingThatIsKnown) {
  std::set<std::string> asked;
  const auto fails = [&](const Scenario& s) {
    EXPECT_TRUE(model::validate(s).empty());
    EXPECT_TRUE(asked.insert(model::content_hash(s)).second);
    return testing::decode_ignores_causal(s);
  };
  const Explanation fresh = explain(one_query_behind_a_past(), fails);
  EXPECT_GT(fresh.evaluations, 20);
  EXPECT_LE(fresh.evaluations, 80);
  Judged known;
  for (const std::string& hash : asked) known[hash] = true;
  const Explanation told = explain(one_query_behind_a_past(), fails, 200, known);
  EXPECT_EQ(told.evaluations, 0);
  EXPECT_FALSE(told.nearest_passing.has_value());
}

TEST(Explain, ReusesWhatTheSearchHasSeen) {
  for (std::uint64_t seed = 1; seed < 2000; ++seed) {
    const Scenario start = testing::random_scenario(Operator::attention, seed);
    if (!testing::decode_ignores_causal(start)) continue;
    const Result result = shrink(start, testing::decode_ignores_causal, {}, {});
    const Explanation without = explain(result.minimal, testing::decode_ignores_causal);
    const Explanation with =
        explain(result.minimal, testing::decode_ignores_causal, 200, result.judged);
    EXPECT_LT(with.evaluations, without.evaluations);
    EXPECT_EQ(with.nearest_change, without.nearest_change);
    return;
  }
  FAIL() << "no start found";
}

}  // namespace
}  // namespace kvcheck::shrinkers
