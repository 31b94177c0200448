// What a step brings, made ready: norms, turns, rounding and codes by hand.
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cpu/new_rows.h"
#include "tests/kernels/cpu_sequence.h"

namespace kvcheck::kernels {
namespace {

/// One head of two lanes, one token.
SessionConfig two_lanes(ElementType type = ElementType::f32) {
  SessionConfig config = full_cache();
  config.head_size = config.value_head_size = 2;
  config.element_type = type;
  return config;
}

StepRequest one_token(const SessionConfig& config, const Numbers& query, const Numbers& key) {
  StepRequest request;
  request.tokens = request.queries = {1};
  request.query = tensor_of(config.element_type, {1, 1, 1, 2}, query);
  request.key = request.value = tensor_of(config.element_type, {1, 1, 1, 2}, key);
  return request;
}

RotaryConfig turn_of(ElementType type, double cos, double sin) {
  RotaryConfig rotary;
  rotary.cos = tensor_of(type, {1, 1}, {cos});
  rotary.sin = tensor_of(type, {1, 1}, {sin});
  return rotary;
}

template <class Number>
Numbers row_of(const RowSource& source, std::size_t count) {
  std::vector<Number> numbers(count);
  std::memcpy(numbers.data(), source.row(0, 0, 0), count * sizeof(Number));
  return {numbers.begin(), numbers.end()};
}

TEST(StepRows, CopyNothingThatNothingIsDoneTo) {
  const SessionConfig config = two_lanes();
  const StepRequest request = one_token(config, {1, 2}, {3, 4});
  StepRows<float> rows(config);
  rows.prepare(request, Counts{0});
  EXPECT_EQ(rows.rows().key.base, request.key.bytes.data());
  EXPECT_EQ(rows.rows().value.base, request.value.bytes.data());
  EXPECT_EQ(static_cast<const void*>(rows.queries()), request.query.bytes.data());
  EXPECT_EQ(rows.scratch_bytes(), 0);
}

TEST(StepRows, QueriesOfNarrowTypesBecomeNumbers) {
  const SessionConfig config = two_lanes(ElementType::bf16);
  const StepRequest request = one_token(config, {1.5, -2}, {3, 4});
  StepRows<float> rows(config);
  rows.prepare(request, Counts{0});
  EXPECT_EQ(rows.queries()[0], 1.5F);
  EXPECT_EQ(rows.queries()[1], -2.0F);
  EXPECT_EQ(rows.rows().key.base, request.key.bytes.data());
}

TEST(StepRows, NormDividesByTheRootOfMeanSquareAndEpsilonBeforeTheTurn) {
  SessionConfig config = two_lanes();
  config.qk_norm.emplace();
  config.qk_norm->epsilon = 7;  // Mean square 9, so the root is 4.
  config.qk_norm->query_weight = tensor_of(ElementType::f32, {2}, {2, 4});
  config.qk_norm->key_weight = tensor_of(ElementType::f32, {2}, {4, 8});
  const StepRequest request = one_token(config, {3, 3}, {3, -3});
  StepRows<float> plain(config);
  plain.prepare(request, Counts{0});
  EXPECT_EQ((Numbers{plain.queries()[0], plain.queries()[1]}), (Numbers{1.5, 3}));
  EXPECT_EQ(row_of<float>(plain.rows().key, 2), (Numbers{3, -6}));
  EXPECT_EQ(plain.rows().value.base, request.value.bytes.data());

  config.rotary = turn_of(ElementType::f32, 0, 1);  // (a, b) becomes (-b, a).
  StepRows<float> turned(config);
  turned.prepare(request, Counts{0});
  EXPECT_EQ((Numbers{turned.queries()[0], turned.queries()[1]}), (Numbers{-3, 1.5}));
  EXPECT_EQ(row_of<float>(turned.rows().key, 2), (Numbers{6, 3}));
}

TEST(StepRows, KeysAreRoundedToTheElementTypeBeforeTheyAreQuantised) {
  // 129/128 * 63 = 63.4921875 has the bf16 neighbours 63.25 and 63.5: code 64 by the tie, where
  // the exact product has 63.
  SessionConfig config = two_lanes(ElementType::bf16);
  config.rotary = turn_of(ElementType::bf16, 63, 0);
  config.quantisation.kind = "int8";
  config.quantisation.key_scale = tensor_of(ElementType::f32, {1}, {1});
  config.quantisation.value_scale = tensor_of(ElementType::f32, {1}, {0.25});
  const StepRequest request = one_token(config, {1, 0}, {129.0 / 128, 0});
  StepRows<float> rows(config);
  rows.prepare(request, Counts{0});
  EXPECT_EQ(row_of<std::int8_t>(rows.rows().key, 2), (Numbers{64, 0}));
  EXPECT_EQ(row_of<std::int8_t>(rows.rows().value, 2), (Numbers{4, 0}));  // 4.03 unturned.
  EXPECT_EQ(rows.queries()[0], 63.0F);
}

TEST(StepRows, EveryEntryTokenAndHeadHasItsRow) {
  SessionConfig config = full_cache();
  config.batch = 2;
  config.query_heads = config.kv_heads = 2;
  config.quantisation.kind = "int8";
  config.quantisation.key_scale = tensor_of(ElementType::f32, {1}, {1});
  config.quantisation.value_scale = tensor_of(ElementType::f32, {1}, {1});
  StepRequest request;
  request.tokens = request.queries = {2, 1};
  request.query = tensor_of(ElementType::f32, {2, 2, 2, 1}, Numbers(8, 0));
  request.key = request.value = tensor_of(ElementType::f32, {2, 2, 2, 1}, {0, 1, 2, 3, 4, 5, 6, 7});
  StepRows<float> rows(config);
  rows.prepare(request, Counts{0, 3});
  for (const auto& [b, t] : {std::pair{0, 0}, std::pair{0, 1}, std::pair{1, 0}}) {
    for (int head = 0; head < 2; ++head) {
      EXPECT_EQ(std::to_integer<int>(*rows.rows().key.row(b, t, head)), 4 * b + 2 * t + head);
    }
  }
}

}  // namespace
}  // namespace kvcheck::kernels
