// Mutated scenarios are valid, claimed, near and cheap.
#include "properties/mutate.h"

#include <set>

#include <gtest/gtest.h>

#include "kernels/cpu/naive/cpu_naive.h"
#include "model/scenario_json.h"
#include "properties/convert.h"
#include "properties/scenario_stream.h"

namespace kvcheck::properties {
namespace {

TEST(Mutate, GivesOtherScenariosThatTheTargetTakes) {
  const auto target = kernels::make_cpu_naive();
  const auto& capabilities = target->capabilities();
  const ScenarioStream stream(capabilities, {});
  std::set<std::string> texts;
  int asked = 0, made = 0;
  for (std::uint64_t i = 0; i < 500; ++i) {
    const auto scenario = stream.at(Phase::random, i);
    const model::Timeline timeline(*scenario);
    if (cost_of(*scenario, timeline) > kMostTargetedCost / 4) continue;
    ++asked;
    Draw draw(case_random(1, i, 0));
    const auto other = mutate(*scenario, capabilities, draw);
    if (!other) continue;
    ++made;
    EXPECT_TRUE(model::validate(*other).empty());
    EXPECT_EQ(unsupported_reason(capabilities, *other), "");
    EXPECT_NE(*other, *scenario);
    EXPECT_LE(cost_of(*other, model::Timeline(*other)), kMostTargetedCost);
    texts.insert(model::canonical_text(*other));
  }
  EXPECT_GT(asked, 200);
  EXPECT_GT(made, asked * 9 / 10);
  EXPECT_GT(texts.size(), static_cast<std::size_t>(made * 9 / 10));
}

TEST(Mutate, DependsOnTheDrawAlone) {
  const auto target = kernels::make_cpu_naive();
  const auto scenario = ScenarioStream(target->capabilities(), {}).at(Phase::random, 3);
  Draw first(case_random(1, 2, 0)), second(case_random(1, 2, 0));
  EXPECT_EQ(mutate(*scenario, target->capabilities(), first),
            mutate(*scenario, target->capabilities(), second));
}

}  // namespace
}  // namespace kvcheck::properties
