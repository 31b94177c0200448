// A scenario is reached by its address alone, and every phase holds what it should.
#include "properties/scenario_stream.h"

#include <algorithm>

#include <gtest/gtest.h>
#include <rapidcheck/Random.h>

#include "kernels/cpu/naive/cpu_naive.h"
#include "model/scenario_json.h"
#include "model/timeline.h"
#include "properties/convert.h"
#include "tests/properties/model_target.h"

namespace kvcheck::properties {
namespace {

model::Scenario small(std::int64_t tokens) {
  model::Scenario s;
  s.steps.emplace_back(model::Append{{tokens}, {tokens}, 0});
  return s;
}

kernels::Capabilities naive() { return kernels::make_cpu_naive()->capabilities(); }

TEST(ScenarioStream, ACaseIsReachedWithoutDrawingEarlierOnes) {
  StreamOptions options;
  options.seed = 5;
  const ScenarioStream first(naive(), options), second(naive(), options);
  const auto far = first.at(Phase::random, 1234567);
  for (std::uint64_t i = 0; i < 20; ++i) second.at(Phase::random, i);
  EXPECT_EQ(second.at(Phase::random, 1234567), far);
  ASSERT_TRUE(far.has_value());
  EXPECT_NE(first.at(Phase::random, 1234568), far);
  options.seed = 6;
  EXPECT_NE(ScenarioStream(naive(), options).at(Phase::random, 1234567), far);
}

TEST(ScenarioStream, PositionsGoThroughThePhasesInOrder) {
  StreamOptions options;
  options.named = {small(3)};
  options.corpus = {small(1), small(2)};
  const ScenarioStream stream(naive(), options);
  EXPECT_EQ(stream.at(0)->phase, Phase::named);
  EXPECT_EQ(stream.at(1)->phase, Phase::corpus);
  EXPECT_EQ(stream.at(2)->scenario, small(2));
  EXPECT_EQ(stream.at(3)->phase, Phase::lattice);
  const auto listed = stream.listed();
  EXPECT_EQ(listed, 3 + stream.count(Phase::lattice));
  const auto drawn = stream.at(listed + 7);
  ASSERT_TRUE(drawn.has_value());
  EXPECT_EQ(drawn->phase, Phase::random);
  EXPECT_EQ(drawn->index, 7u);
  EXPECT_EQ(drawn->scenario, stream.at(Phase::random, 7));
}

TEST(ScenarioStream, PhasesCanBeLeftOut) {
  StreamOptions options;
  options.corpus = {small(1)};
  options.phases = {Phase::lattice};
  const ScenarioStream stream(naive(), options);
  EXPECT_EQ(stream.count(Phase::corpus), 0u);
  EXPECT_EQ(stream.count(Phase::random), 0u);
  EXPECT_GT(stream.count(Phase::lattice), 100u);
  EXPECT_FALSE(stream.at(stream.listed()).has_value());
}

TEST(ScenarioStream, LeavesOutWhatTheTargetDoesNotClaim) {
  StreamOptions options;
  auto foreign = small(1);
  foreign.op = model::Operator::attention;
  foreign.opset = 23;
  options.named = {foreign, small(1)};
  auto capabilities = naive();
  capabilities.operators = {"gqa"};
  EXPECT_EQ(ScenarioStream(capabilities, options).count(Phase::named), 1u);
}

TEST(ScenarioStream, HasNothingRandomWhereTheFocusLeavesNothing) {
  auto capabilities = naive();
  capabilities.operators = {"gqa"};
  StreamOptions options;
  options.focus = {false, false, true, true};
  const ScenarioStream stream(capabilities, options);
  EXPECT_EQ(stream.count(Phase::random), 0u);
  EXPECT_FALSE(stream.at(Phase::random, 0).has_value());
}

TEST(ScenarioStream, DrawsContextsOfTheLengthAskedForWithFewQueries) {
  for (auto capabilities : {naive(), all_capabilities()}) {
    for (const std::int64_t length : {32, 512, 4096}) {
      StreamOptions options;
      options.focus.context_length = length;
      const ScenarioStream stream(capabilities, options);
      EXPECT_EQ(stream.listed(), 0u);
      for (std::uint64_t i = 0; i < 200; ++i) {
        const auto scenario = stream.at(Phase::random, i);
        ASSERT_TRUE(scenario.has_value());
        const model::Timeline timeline(*scenario);
        std::int64_t longest = 0, queries = 0;
        for (const auto& step : timeline.steps()) {
          for (const auto& entry : step.entries) {
            longest = std::max(longest, entry.length);
            queries += entry.queries;
          }
        }
        EXPECT_GE(longest, length - length / 8 - 5) << model::canonical_text(*scenario);
        EXPECT_LE(longest, length + 16) << model::canonical_text(*scenario);
        EXPECT_LE(queries, 40) << model::canonical_text(*scenario);
      }
    }
  }
}

TEST(ScenarioStream, UsualScenariosAreSmall) {
  const ScenarioStream stream(naive(), {});
  std::vector<std::int64_t> tokens;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    const auto scenario = stream.at(Phase::random, i);
    std::int64_t sum = 0;
    const model::Timeline timeline(*scenario);
    for (const auto& step : timeline.steps()) {
      sum += std::max<std::int64_t>(0, step.entries[0].length - step.entries[0].past);
    }
    tokens.push_back(sum);
  }
  std::sort(tokens.begin(), tokens.end());
  EXPECT_GE(tokens[tokens.size() / 2], 5);
  EXPECT_LE(tokens[tokens.size() / 2], 20);
  EXPECT_GT(tokens.back(), 100);
}

TEST(Phase, ReadsBackItsName) {
  for (const Phase phase : kPhases) EXPECT_EQ(phase_from(to_string(phase)), phase);
  EXPECT_EQ(phase_from("everything"), std::nullopt);
}

}  // namespace
}  // namespace kvcheck::properties
