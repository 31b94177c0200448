// Rotary positions of a step, and turns of a row, by hand.
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cpu/rotary.h"
#include "tests/kernels/cpu_sequence.h"

namespace kvcheck::kernels {
namespace {

/// Tables with a row for each of `rows` positions; row p of pair i holds the given numbers.
RotaryConfig tables(bool interleaved, std::int64_t rows, const Numbers& cos, const Numbers& sin) {
  RotaryConfig config;
  config.interleaved = interleaved;
  const auto pairs = static_cast<std::int64_t>(cos.size()) / rows;
  config.cos = tensor_of(ElementType::f32, {rows, pairs}, cos);
  config.sin = tensor_of(ElementType::f32, {rows, pairs}, sin);
  return config;
}

Numbers turned(const RotaryConfig& config, std::int64_t position, std::vector<float> row) {
  RotaryTable<float>(config).turn(position, row.data());
  return {row.begin(), row.end()};
}

TEST(RotaryTable, TurnsPairsHalfAHeadApartOrNeighbours) {
  // Position 1 turns pair 0 by a right angle and leaves pair 1.
  const Numbers cos{1, 1, 0, 1}, sin{0, 0, 1, 0};
  EXPECT_EQ(turned(tables(false, 2, cos, sin), 1, {1, 2, 3, 4}), (Numbers{-3, 2, 1, 4}));
  EXPECT_EQ(turned(tables(true, 2, cos, sin), 1, {1, 2, 3, 4}), (Numbers{-2, 1, 3, 4}));
  EXPECT_EQ(turned(tables(false, 2, cos, sin), 0, {1, 2, 3, 4}), (Numbers{1, 2, 3, 4}));
}

TEST(RotaryTable, TurnsEveryPair) {
  const Numbers cos{0, 0}, sin{1, 1};
  EXPECT_EQ(turned(tables(false, 1, cos, sin), 0, {1, 2, 3, 4}), (Numbers{-3, -4, 1, 2}));
  EXPECT_EQ(turned(tables(true, 1, cos, sin), 0, {1, 2, 3, 4}), (Numbers{-2, 1, -4, 3}));
}

TEST(RotaryTable, LeavesLanesBeyondItsPairs) {
  EXPECT_EQ(turned(tables(false, 1, {0}, {1}), 0, {1, 2, 3, 4}), (Numbers{-2, 1, 3, 4}));
}

/// A step of a session with a rotary embedding.
struct Step {
  SessionConfig config = full_cache();
  Counts lengths;
  StepRequest request;

  Step(Counts before, const Counts& tokens, const Counts& queries) : lengths(std::move(before)) {
    config.batch = static_cast<std::int64_t>(lengths.size());
    config.rotary.emplace();
    request.tokens = tokens;
    request.queries = queries;
  }
  void ids(std::int64_t columns, const Numbers& numbers) {
    config.rotary->position_ids = true;
    request.position_ids = tensor_of(ElementType::i64, {config.batch, columns}, numbers);
  }
  RotaryPositions positions() const { return {config, lengths, request}; }
};

TEST(RotaryPositions, WithoutIdsAreThoseOfTheTokens) {
  const Step step({3, 5}, {2, 1}, {2, 1});
  EXPECT_EQ(step.positions().of(0, 1), 4);
  EXPECT_EQ(step.positions().of(1, 0), 5);
}

TEST(RotaryPositions, OfQueriesWithoutTokensEndAtTheLength) {
  const Step step({5, 3}, {0, 0}, {2, 2});
  EXPECT_EQ(step.positions().of(0, 0), 3);
  EXPECT_EQ(step.positions().of(1, 1), 2);
}

TEST(RotaryPositions, OfTheFirstPromptCountUpFromElementZero) {
  Step step({0, 0}, {3, 2}, {3, 2});
  step.ids(4, {7, 50, 60, 70, 80, 90, 91, 92});
  EXPECT_TRUE(step.positions().first_prompt());
  EXPECT_EQ(step.positions().of(0, 2), 9);
  EXPECT_EQ(step.positions().of(1, 1), 8);
}

TEST(RotaryPositions, LaterReadOneFlatList) {
  Step step({4, 2}, {1, 1}, {1, 1});
  step.ids(2, {10, 20, 30, 40});
  EXPECT_FALSE(step.positions().first_prompt());
  EXPECT_EQ(step.positions().of(0, 0), 10);
  EXPECT_EQ(step.positions().of(1, 0), 20);  // Element 1 of the list, though row 1 begins with 30.
}

TEST(RotaryPositions, OfAPromptWithQueryLengthsReadTheListToo) {
  Step idle({0, 0}, {2, 0}, {2, 0});
  idle.ids(2, {10, 20, 30, 40});
  EXPECT_FALSE(idle.positions().first_prompt());
  EXPECT_EQ(idle.positions().of(0, 1), 20);
  Step ragged({0, 0}, {2, 1}, {2, 1});
  ragged.ids(2, {10, 20, 30, 40});
  EXPECT_TRUE(ragged.positions().first_prompt());
  ragged.config.layout = "block";
  EXPECT_FALSE(ragged.positions().first_prompt());
  EXPECT_EQ(ragged.positions().of(1, 0), 30);
}

TEST(RotaryPositions, OfQueriesAsManyAsKeysAreAFirstPrompt) {
  Step step({3}, {0}, {3});
  step.ids(3, {5, 60, 70});
  EXPECT_TRUE(step.positions().first_prompt());
  EXPECT_EQ(step.positions().of(0, 2), 7);
  step.request.queries = {2};
  EXPECT_FALSE(step.positions().first_prompt());
}

}  // namespace
}  // namespace kvcheck::kernels
