// Differences between scenarios read like the JSON form.
#include "shrinkers/fields.h"

#include <gtest/gtest.h>

#include "tests/shrinkers/random_scenario.h"

namespace kvcheck::shrinkers {
namespace {

using model::Append;
using model::Past;
using model::Scenario;
using testing::plain_scenario;
using testing::random_scenario;

TEST(Fields, DifferenceNamesEachChangedField) {
  Scenario before = plain_scenario({Past{{1}}, Append{{4}, {4}, 0}});
  before.cache = {model::LayoutKind::block, 8, 5};
  Scenario after = before;
  after.cache = {};
  after.query_heads = 2;
  EXPECT_EQ(difference(before, after),
            "query_heads 1 -> 2, cache.layout block -> full, cache.window_size 5 -> off, "
            "cache.capacity 8 -> 0");
}

TEST(Fields, DifferenceShowsListsOnlyWhereEntriesDiffer) {
  const Scenario before = plain_scenario({Append{{4, 4}, {4, 4}, 0}});
  Scenario after = plain_scenario({Append{{4, 2}, {4, 2}, 0}});
  EXPECT_EQ(difference(before, after), "steps[0].tokens 4 -> [4, 2]");
  EXPECT_EQ(difference(before, after, false), "");
}

TEST(Fields, QueriesOfAttentionAreNumbersOfTheirOwn) {
  Scenario before = plain_scenario({Append{{4}, {4}, 0}});
  before.op = model::Operator::attention;
  Scenario after = before;
  after.steps = {Append{{4}, {1}, 0}};
  EXPECT_EQ(difference(before, after), "steps[0].queries 4 -> 1");
}

TEST(Fields, DifferenceSaysHowManyStepsAreLeft) {
  const Scenario before = plain_scenario({Past{{1}}, Append{{4}, {4}, 0}});
  const Scenario after = plain_scenario({Past{{1}}});
  EXPECT_EQ(difference(before, after), "steps 2 -> 1");
  EXPECT_EQ(changed_fields(before, after), std::vector<std::string>{"steps"});
}

TEST(Fields, FieldsThatOnlyOneSideHasAreOffOnTheOther) {
  Scenario before = plain_scenario({Past{{1}}});
  before.op = model::Operator::attention;
  Scenario after = before;
  after.mask = {model::MaskKind::boolean, 2, 50, 0, false};
  EXPECT_EQ(difference(before, after),
            "mask.kind none -> boolean, mask.rank off -> 2, mask.hidden_percent off -> 50, "
            "mask.seed off -> 0, mask.empty_rows off -> false");
}

TEST(Fields, EqualScenariosDifferInNothing) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Scenario s = random_scenario(model::Operator::gqa, seed);
    EXPECT_EQ(difference(s, s), "");
    EXPECT_TRUE(changed_fields(s, s).empty());
  }
}

TEST(Fields, TextOfAFieldIsFoundByName) {
  const Scenario s = plain_scenario({Past{{1, 3}}});
  EXPECT_EQ(field_text(s, "batch"), "2");
  EXPECT_EQ(field_text(s, "steps[0].tokens"), "[1, 3]");
  EXPECT_EQ(field_text(s, "mask.kind"), "");
}

}  // namespace
}  // namespace kvcheck::shrinkers
