// Facts about stretching, worked out by hand.
#include "properties/audit/stretch.h"

#include <gtest/gtest.h>

#include "model/scenario_json.h"
#include "model/timeline.h"
#include "properties/audit/modelled_target.h"
#include "properties/audit/scenario_source.h"

namespace kvcheck::properties {
namespace {

model::Scenario block() {
  return model::parse_scenario(R"({"schema":1,"operator":"gqa","head_size":8,
      "cache":{"layout":"block","capacity":7,"window_size":4},
      "steps":[{"append":6},{"append":2},{"rollback":1},{"append":1}]})");
}

std::vector<std::int64_t> lengths(const model::Scenario& scenario) {
  std::vector<std::int64_t> all;
  const model::Timeline timeline(scenario);
  for (const auto& step : timeline.steps()) {
    all.push_back(step.entries.back().length);
  }
  return all;
}

TEST(Stretch, PutsWholeBlocksBeforeACacheThatKeepsItsSize) {
  // G = 7 - 4 + 1 = 4, so 102 tokens become 100.
  const auto s = stretched(modelled_capabilities(), block(), 102, Stretch::past);
  ASSERT_TRUE(s.has_value());
  EXPECT_EQ(s->cache.capacity, 7);
  EXPECT_EQ(lengths(*s), (std::vector<std::int64_t>{100, 106, 108, 107, 108}));
}

TEST(Stretch, GrowsCacheAndWindowWithThePast) {
  const auto s = stretched(modelled_capabilities(), block(), 102, Stretch::wide);
  ASSERT_TRUE(s.has_value());
  EXPECT_EQ(s->cache.capacity, 109);
  EXPECT_EQ(s->cache.window_size, 106);
  EXPECT_EQ(lengths(*s), (std::vector<std::int64_t>{102, 108, 110, 109, 110}));
  // Evictions and exact rollbacks are those of the short one: L(8) = 4, L(110) = 106.
  const model::Timeline small(block()), large(*s);
  for (std::size_t i = 0; i < 4; ++i) {
    const auto& a = small.steps()[i].entries.front();
    const auto& b = large.steps()[i + 1].entries.front();
    EXPECT_EQ(a.resident + 102, b.resident);
    EXPECT_EQ(a.rollback_exact, b.rollback_exact);
  }
}

TEST(Stretch, TheLastEntryAloneOrTheFirstAppend) {
  auto two = block();
  two.batch = 2;
  two = model::normalise(two);
  const auto ragged = stretched(modelled_capabilities(), two, 40, Stretch::last_entry);
  ASSERT_TRUE(ragged.has_value());
  const auto& past = std::get<model::Past>(ragged->steps.front());
  EXPECT_EQ(past.tokens, (std::vector<std::int64_t>{0, 40}));

  EXPECT_FALSE(stretched(modelled_capabilities(), two, 40, Stretch::first_append).has_value());
  const auto attention = model::parse_scenario(
      R"({"schema":1,"operator":"attention","opset":23,"head_size":8,"steps":[{"append":3}]})");
  const auto prompt = stretched(modelled_capabilities(), attention, 40, Stretch::first_append);
  ASSERT_TRUE(prompt.has_value());
  EXPECT_EQ(std::get<model::Append>(prompt->steps.front()).tokens.front(), 43);
  EXPECT_EQ(std::get<model::Append>(prompt->steps.front()).queries.front(), 3);
}

TEST(Stretch, LeavesWhatWouldAskTooMuchAlone) {
  auto wide = block();
  wide.query_heads = 64;
  wide.head_size = wide.value_head_size = 128;
  EXPECT_FALSE(stretched(modelled_capabilities(), wide, 4096, Stretch::past).has_value());
}

TEST(ScenarioSource, IsAPureFunctionOfItsIndexAndReachesTheContext) {
  const ScenarioSource source(modelled_capabilities(), {7, 200, {}});
  const ScenarioSource again(modelled_capabilities(), {7, 200, {}});
  int drawn = 0, long_enough = 0;
  for (std::uint64_t i = 0; i < 60; ++i) {
    const auto scenario = source.at(i);
    EXPECT_TRUE(source.random(i));
    EXPECT_EQ(scenario, again.at(i));
    if (!scenario) continue;
    ++drawn;
    std::int64_t longest = 0;
    for (const auto length : lengths(*scenario)) longest = std::max(longest, length);
    long_enough += longest >= 100 ? 1 : 0;
  }
  EXPECT_GT(drawn, 20);
  EXPECT_GT(long_enough, drawn * 9 / 10);
}

TEST(ScenarioSource, BeginsWithTheListedScenarios) {
  const ScenarioSource source(modelled_capabilities(), {7, 0, KVCHECK_REGRESSION_FOLDER});
  EXPECT_FALSE(source.random(0));
  EXPECT_TRUE(source.random(100000));
  EXPECT_TRUE(source.at(0).has_value());
}

TEST(ScenarioSource, HasRandomDrawsFromTheStartWhereTheyAreAskedForAlone) {
  const ScenarioSource source(modelled_capabilities(), {7, 0, KVCHECK_REGRESSION_FOLDER});
  const ScenarioSource drawn(modelled_capabilities(), {7, 0, KVCHECK_REGRESSION_FOLDER, true});
  std::uint64_t listed = 0;
  while (!source.random(listed)) ++listed;
  EXPECT_GT(listed, 100u);
  for (std::uint64_t i = 0; i < 20; ++i) {
    EXPECT_TRUE(drawn.random(i));
    EXPECT_EQ(drawn.at(i), source.at(listed + i)) << i;
  }
}

}  // namespace
}  // namespace kvcheck::properties
