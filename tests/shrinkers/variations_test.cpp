// Variations are valid, one edit away, and say what they changed.
#include "shrinkers/variations.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "shrinkers/fields.h"
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

std::set<std::string> others_of(const Scenario& s, const std::string& field) {
  std::set<std::string> others;
  for (const Variation& each : variations(s)) {
    if (each.field == field) others.insert(each.other);
  }
  return others;
}

TEST(Variations, AreValidDistinctAndNormal) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    const Scenario s = random_scenario(seed % 2 ? Operator::gqa : Operator::attention, seed);
    for (const Variation& each : variations(s)) {
      EXPECT_TRUE(model::validate(each.scenario).empty()) << each.field;
      EXPECT_EQ(model::normalise(each.scenario), each.scenario) << each.field;
      EXPECT_NE(each.scenario, s) << each.field;
      EXPECT_NE(each.value, each.other) << each.field;
      if (each.other != "removed") {
        EXPECT_EQ(field_text(s, each.field), each.value);
        EXPECT_EQ(field_text(each.scenario, each.field), each.other);
      }
    }
  }
}

TEST(Variations, MoveNumbersUpAndDown) {
  Scenario s = plain_scenario({Past{{9}}, Append{{2}, {2}, 0}});
  s.cache = {model::LayoutKind::block, 6, 4};
  EXPECT_EQ(others_of(s, "cache.window_size"), (std::set<std::string>{"3", "5", "8", "off"}));
  EXPECT_EQ(others_of(s, "cache.capacity"), (std::set<std::string>{"4", "5", "7", "12"}));
  EXPECT_EQ(others_of(s, "steps[1].tokens"), (std::set<std::string>{"1", "3", "4"}));
  EXPECT_EQ(others_of(s, "steps[1].queries"), (std::set<std::string>{"0"}));
  EXPECT_EQ(others_of(s, "steps[0]"), (std::set<std::string>{"removed"}));
  EXPECT_EQ(others_of(s, "batch"), (std::set<std::string>{"2"}));
}

TEST(Variations, CountWhatAnEditDragsAlong) {
  Scenario s = plain_scenario({Past{{9}}, Append{{2}, {2}, 0}});
  s.cache = {model::LayoutKind::block, 4, 4};
  for (const Variation& each : variations(s)) {
    if (each.field == "cache.window_size" && each.other == "5") {
      EXPECT_EQ(each.dragged, 1) << "the capacity must follow";
    }
    if (each.field == "steps[1].tokens") {
      EXPECT_EQ(each.dragged, 0);
    }
  }
}

TEST(Variations, OfABatchMoveSingleEntries) {
  const Scenario s = plain_scenario({Append{{2, 5}, {2, 5}, 0}});
  EXPECT_EQ(others_of(s, "steps[0].tokens"),
            (std::set<std::string>{"[1, 4]", "[3, 6]", "[7, 10]", "[1, 5]", "[3, 5]", "[2, 4]",
                                   "[2, 6]"}));
}

TEST(Variations, TryAnotherGenerationOnlyAfterARollback) {
  const Scenario without = plain_scenario({Append{{2}, {2}, 0}, Append{{2}, {2}, 0}});
  EXPECT_TRUE(others_of(without, "steps[1].generation").empty());
  const Scenario with = plain_scenario({Append{{2}, {2}, 0}, Rollback{{1}}, Append{{1}, {1}, 1}});
  EXPECT_EQ(others_of(with, "steps[2].generation"), (std::set<std::string>{"0", "2"}));
}

}  // namespace
}  // namespace kvcheck::shrinkers
