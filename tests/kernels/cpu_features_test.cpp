// Optional inputs and attributes on cpu-naive and its quantised siblings, by hand.
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "tests/kernels/cpu_sequence.h"

namespace kvcheck::kernels {
namespace {

/// One query of 1 at the last of three positions: its logits are the keys.
Numbers last_of_three(const SessionConfig& config, const Numbers& keys, const Numbers& values) {
  Sequence sequence(config);
  StepRequest request = sequence.request({3}, {3});
  request.query = tensor_of(config.element_type, {1, 3, 1, 1}, {0, 0, 1});
  request.key = tensor_of(config.element_type, {1, 3, 1, 1}, keys);
  request.value = tensor_of(config.element_type, {1, 3, 1, 1}, values);
  const Numbers outputs = sequence.run(request);
  return {outputs.begin() + 2, outputs.end()};
}

TEST(Features, SoftcapBendsTheLogitsBeforeTheBias) {
  SessionConfig config = full_cache();
  config.softcap = 2;
  const double e = std::exp(2 * std::tanh(1.5));  // Logit 3 under a cap of 2; the others are 0.
  EXPECT_NEAR(last_of_three(config, {0, 0, 3}, {0, 0, 1})[0], e / (2 + e), 1e-6);

  config.mask = "additive";
  Sequence sequence(config);
  StepRequest request = sequence.request({2}, {2});  // Queries 0: all scores are 0.
  // Capped after the bias, 50 would be 2.
  request.mask = sequence.mask({1, 1, 2, 2}, {0, -kInfinity, 0, 50});
  EXPECT_EQ(sequence.run(request), (Numbers{0, 1}));
}

TEST(Features, SinksWeighInTheDenominatorAlone) {
  SessionConfig config = full_cache();
  config.smooth_softmax = true;
  // Weights 1/(n + 1) on 0, 1, 2.
  EXPECT_EQ(Sequence(config).append({3}), (Numbers{0, static_cast<float>(1.0 / 3), 0.75}));
  config.query_heads = 2;
  // Head 0 has the logit 0, head 1 one that takes all; the sink comes before smooth_softmax.
  config.head_sink = tensor_of(ElementType::f32, {2}, {0, 1000});
  const Numbers outputs = Sequence(config).append({3});
  EXPECT_EQ((Numbers{outputs[4], outputs[5]}), (Numbers{0.75, 0}));
  config.window_size = 0;
  EXPECT_EQ(Sequence(config).append({1}), (Numbers{0, 0}));
}

TEST(Features, QueriesWithoutTokensStandAtTheEnd) {
  Sequence sequence(full_cache());
  sequence.append({4});
  EXPECT_EQ(sequence.append({0}, {2}), (Numbers{1, 1.5}));
  EXPECT_EQ(sequence.append({0}, {4}), (Numbers{0, 0.5, 1, 1.5}));
  EXPECT_EQ(sequence.keys(5), (Numbers{0, 1, 2, 3, 0}));  // Nothing was written.
  Sequence windowed(full_cache(2));
  windowed.append({4});
  EXPECT_EQ(windowed.append({0}, {1}), (Numbers{2.5}));
}

TEST(Features, BiasColumnsArePositionsAlsoInAWindowedCache) {
  SessionConfig config = block_cache(6, 4);
  config.mask = "additive";
  Sequence sequence(config);
  StepRequest request = sequence.request({6}, {0});
  sequence.run(request);
  request = sequence.request({1}, {1});
  // The window holds 3..6, and compaction puts position 3 into row 0; column 3 hides it.
  request.mask = sequence.mask({1, 1, 1, 7}, {0, 0, 0, -kInfinity, 0, 0, 0});
  EXPECT_EQ(sequence.run(request), (Numbers{5}));
}

TEST(Features, BiasWithOneEntryOrHeadIsSharedByAll) {
  SessionConfig config = full_cache();
  config.mask = "additive";
  config.batch = config.query_heads = 2;
  Sequence sequence(config);
  StepRequest request = sequence.request({2, 2}, {2, 2});
  // Per head: the first sees all, the second the newest alone.
  request.mask = sequence.mask({1, 2, 2, 2}, {0, 0, 0, 0, 0, -kInfinity, -kInfinity, 0});
  EXPECT_EQ(sequence.run(request), (Numbers{0, 0, 0.5, 1, 1000, 1000, 1000.5, 1001}));
}

TEST(Features, AttentionHasWindowsBothWays) {
  SessionConfig config = attention(false);
  config.opset = 25;
  config.window_size = 2;
  config.right_window_size = 1;
  // Four keys: {0,1}, {0..2}, {1..3}, {2,3}.
  EXPECT_EQ(Sequence(config).append({4}), (Numbers{0.5, 1, 2, 2.5}));
  config.window_size = -1;
  config.right_window_size = 0;
  EXPECT_EQ(Sequence(config).append({3}), (Numbers{0, 0.5, 1}));
  config = nonpad(8);
  config.opset = 25;
  config.window_size = 2;
  Sequence sequence(config);
  sequence.load({3});
  EXPECT_EQ(sequence.append({1}, {2}), (Numbers{1.5, 2.5}));  // Positions 2 and 3.
}

TEST(Features, AttentionAppendsNothingAndStillAsks) {
  Sequence sequence(attention());
  sequence.load({3});
  EXPECT_EQ(sequence.append({0}, {2}), (Numbers{1, 1}));  // Offset 3: all three keys.
}

TEST(Features, MissingMaskColumnsHide) {
  SessionConfig config = attention(false);
  config.opset = 24;
  config.mask = "boolean";
  Sequence sequence(config);
  StepRequest request = sequence.request({4}, {1});
  request.mask = sequence.mask({3}, {1, 0, 1});
  EXPECT_EQ(sequence.run(request), (Numbers{1}));
}

TEST(Features, RotaryTurnsQueriesAndNewKeysByTheirPositions) {
  SessionConfig config = full_cache();
  config.head_size = config.value_head_size = 2;
  config.capacity = 4;
  config.scale = 1;
  config.rotary.emplace();
  // Position 0 stays, 1 turns by a right angle, 2 by two of them.
  config.rotary->cos = tensor_of(ElementType::f32, {3, 1}, {1, 0, -1});
  config.rotary->sin = tensor_of(ElementType::f32, {3, 1}, {0, 1, 0});
  Sequence sequence(config);
  StepRequest request = sequence.request({2}, {2});
  request.key = tensor_of(ElementType::f32, {1, 2, 1, 2}, {1, 2, 1, 2});
  sequence.run(request);
  EXPECT_EQ(sequence.keys(2), (Numbers{1, -2}));
  request = sequence.request({1}, {1});
  request.query = tensor_of(ElementType::f32, {1, 1, 1, 2}, {100, 0});
  request.key = tensor_of(ElementType::f32, {1, 1, 1, 2}, {1, 2});
  request.value = tensor_of(ElementType::f32, {1, 1, 1, 2}, {7, 7});
  // The query is (-100, 0): logits -100, 200 and 100.
  EXPECT_EQ(sequence.run(request)[0], 1);
}

TEST(Features, QuantisedCachesHoldCodesAndAttentionReadsThem) {
  for (const char* kind : {"int8", "int4"}) {
    SessionConfig config = full_cache();
    config.head_size = config.value_head_size = 2;
    config.capacity = 4;
    config.quantisation.kind = kind;
    config.quantisation.key_scale = tensor_of(ElementType::f32, {1}, {1});
    config.quantisation.value_scale = tensor_of(ElementType::f32, {1}, {2});
    Sequence sequence(config);
    // Values 0, 1, 2, 3 in steps of 2, ties to even: 0, 0, 2, 4.
    EXPECT_EQ(sequence.append({4}), (Numbers{0, 0, 0, 0, static_cast<float>(2.0 / 3),
                                             static_cast<float>(2.0 / 3), 1.5, 1.5}))
        << kind;
    const bool pairs = std::string(kind) == "int4";
    EXPECT_EQ(sequence.values(4), pairs ? (Numbers{0x88, 0x88, 0x99, 0xaa}) : (Numbers{0, 0, 1, 2}))
        << kind;
  }
}

TEST(Features, AWiderSoftmaxPrecisionComputesInDouble) {
  SessionConfig config = attention(false);
  // 1 + 2^24 + ... in f32: the sum of 2^24 and 1 twice is 2^24 + 2 in double, 2^24 in f32.
  const Numbers values{0x1p24, 1, 1};
  EXPECT_EQ(last_of_three(config, {0, 0, 0}, values)[0], static_cast<float>(0x1p24 / 3));
  config.softmax_precision = ElementType::f64;
  EXPECT_EQ(last_of_three(config, {0, 0, 0}, values)[0], static_cast<float>((0x1p24 + 2) / 3));
  config.softmax_precision = ElementType::f16;
  EXPECT_EQ(last_of_three(config, {0, 0, 0}, {0, 0, 3})[0], 1);
}

}  // namespace
}  // namespace kvcheck::kernels
