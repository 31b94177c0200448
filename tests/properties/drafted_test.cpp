// Which drafts are put in: exact ones only, with the steps of the case unchanged between them.
#include "properties/catalog/drafted.h"

#include <set>

#include <gtest/gtest.h>

namespace kvcheck::properties {
namespace {

using model::Append;
using model::Rollback;
using model::Scenario;

Append append(std::int64_t tokens) { return {{tokens}, {tokens}, 0}; }

Scenario with_steps(std::uint64_t seed, std::vector<model::Step> steps) {
  Scenario s;
  s.fill.seed = seed;
  s.steps = std::move(steps);
  return s;
}

TEST(Drafted, KeepsTheStepsAndDropsAllThatItAppends) {
  std::set<std::string> shapes;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Scenario s = with_steps(seed, {append(2), append(1), append(3), append(1)});
    s.cache.capacity = 40;
    const model::Timeline timeline(s);
    const Drafted drafted = with_drafts(s, timeline, true);
    ASSERT_TRUE(model::validate(drafted.scenario).empty());
    EXPECT_EQ(drafted.drafts, 3);
    ASSERT_EQ(drafted.places.size(), s.steps.size());
    const model::Timeline there(drafted.scenario);
    for (std::size_t i = 0; i < s.steps.size(); ++i) {
      EXPECT_EQ(drafted.scenario.steps[drafted.places[i]], s.steps[i]);
      EXPECT_TRUE(there.steps()[drafted.places[i]].defined);
      EXPECT_EQ(there.steps()[drafted.places[i]].entries[0].length,
                timeline.steps()[i].entries[0].length);
    }
    shapes.insert(drafted.in_words());
  }
  EXPECT_EQ(shapes, (std::set<std::string>{
                        "before step 0: append 3, rollback 3",
                        "before step 0: append 3, rollback 1, rollback 1, rollback 1",
                        "before step 0: append 1, rollback 1, append 3, rollback 3",
                        "before step 0: append 3, rollback 1, rollback 2, append 1, rollback 1"}));
}

TEST(Drafted, IsNoLongerThanTheBufferAndNoDeeperThanTheLayoutAllows) {
  Scenario full = with_steps(1, {append(6), append(1)});  // As many rows as the steps need: 7.
  const model::Timeline timeline(full);
  const Drafted drafted = with_drafts(full, timeline, true);
  EXPECT_EQ(drafted.scenario.cache.capacity, 7);
  EXPECT_TRUE(model::validate(drafted.scenario).empty());
  // One row is free before step 1.
  EXPECT_EQ(drafted.drafts, 2);
  for (std::size_t i = drafted.places[0] + 1; i < drafted.places[1]; ++i) {
    const auto* step = std::get_if<Append>(&drafted.scenario.steps[i]);
    EXPECT_TRUE(step == nullptr || step->tokens[0] == 1);
  }

  // With C = W every token evicts once the buffer is full, and nothing can be given back exactly.
  Scenario window = with_steps(1, {append(9), append(1)});
  window.cache.layout = model::LayoutKind::block;
  window.cache.capacity = 4;
  window.cache.window_size = 4;
  const model::Timeline evicting(window);
  const Drafted early = with_drafts(window, evicting, true);
  EXPECT_EQ(early.drafts, 1);
  EXPECT_EQ(early.places[1], early.places[0] + 1);
}

TEST(Drafted, BringsOneTokenAtATimeWhereStepsMayNotBringSeveral) {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    Scenario s = with_steps(seed, {append(2), append(1)});
    s.cache.capacity = 20;
    const Drafted drafted = with_drafts(s, model::Timeline(s), false);
    for (const auto& step : drafted.scenario.steps) {
      const auto* brought = std::get_if<Append>(&step);
      EXPECT_TRUE(brought == nullptr || brought->generation == 0 || brought->tokens[0] == 1);
    }
  }
}

}  // namespace
}  // namespace kvcheck::properties
