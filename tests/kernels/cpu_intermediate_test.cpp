// The intermediate that a session hands out, at every stage, by hand.
#include <cmath>
#include <string>

#include <gtest/gtest.h>

#include "kernels/cpu/intermediate.h"
#include "tests/kernels/cpu_sequence.h"

namespace kvcheck::kernels {
namespace {

/// Three keys 0, 1, 2 after a past of `past`; queries of 1, so that logits are keys.
Numbers qk_of(const SessionConfig& config, std::int64_t tokens, std::int64_t queries,
              const Numbers& mask = {}) {
  Sequence sequence(config);
  StepRequest request = sequence.request({tokens}, {queries});
  request.query = tensor_of(ElementType::f32, request.query.shape,
                            Numbers(static_cast<std::size_t>(queries), 1));
  if (!mask.empty()) {
    request.mask = sequence.mask({1, 1, queries, tokens}, mask);
  }
  sequence.run(request);
  return sequence.qk();
}

SessionConfig with(SessionConfig config, const char* stage) {
  config.qk_output = stage;
  return config;
}

TEST(Intermediate, IsAbsentUnlessAskedFor) { EXPECT_EQ(qk_of(full_cache(), 3, 3), Numbers{}); }

TEST(Intermediate, OfGqaHoldsZeroWhereAQueryMayNotSee) {
  EXPECT_EQ(qk_of(with(full_cache(), "biased"), 3, 3), (Numbers{0, 0, 0, 0, 1, 0, 0, 1, 2}));
  EXPECT_EQ(qk_of(with(full_cache(2), "biased"), 3, 3), (Numbers{0, 0, 0, 0, 1, 0, 0, 1, 2}));
  const Numbers halves = qk_of(with(full_cache(1), "probabilities"), 3, 3);
  EXPECT_EQ(halves, (Numbers{1, 0, 0, 0, 1, 0, 0, 0, 1}));
}

TEST(Intermediate, OfGqaHoldsMinusInfinityWhereTheBiasAloneHides) {
  SessionConfig config = with(full_cache(), "biased");
  config.mask = "additive";
  const double inf = kInfinity;
  EXPECT_EQ(qk_of(config, 2, 2, {5, -inf, -inf, 7}), (Numbers{5, 0, -inf, 8}));
  EXPECT_EQ(qk_of(with(config, "probabilities"), 2, 2, {5, -inf, -inf, 7}), (Numbers{1, 0, 0, 1}));
}

TEST(Intermediate, LeavesTheShareOfASinkOut) {
  SessionConfig config = with(full_cache(), "probabilities");
  config.head_sink = tensor_of(ElementType::f32, {1}, {0});
  Sequence sequence(config);
  sequence.append({3});  // Queries 0.
  const Numbers quarter(3, 0.25);
  EXPECT_EQ((Numbers{sequence.qk().begin() + 6, sequence.qk().end()}), quarter);
}

TEST(Intermediate, OfAttentionHoldsRawAndCappedScoresOfEveryKey) {
  SessionConfig config = attention();
  config.softcap = 2;
  EXPECT_EQ(qk_of(with(config, "raw"), 3, 1), (Numbers{0, 1, 2}));
  const Numbers capped = qk_of(with(config, "softcapped"), 3, 1);
  EXPECT_NEAR(capped[1], 2 * std::tanh(0.5), 1e-6);
  EXPECT_NEAR(capped[2], 2 * std::tanh(1.0), 1e-6);
}

TEST(Intermediate, OfAttentionHoldsMinusInfinityForHiddenKeys) {
  const double inf = kInfinity;
  SessionConfig config = attention();
  config.mask = "additive";
  EXPECT_EQ(qk_of(with(config, "biased"), 3, 2, {4, 0, 0, -inf, 1, 0}),
            (Numbers{4, -inf, -inf, -inf, 2, -inf}));
  EXPECT_EQ(qk_of(with(config, "probabilities"), 3, 2, {4, 0, 0, -inf, -inf, 0}),
            (Numbers{1, 0, 0, 0, 0, 0}));
}

TEST(Intermediate, HasAColumnForEveryRowOfANonpadBuffer) {
  Sequence sequence(with(nonpad(5, false), "probabilities"));
  sequence.load({1});
  sequence.append({1}, {1});
  EXPECT_EQ(sequence.qk(), (Numbers{0.5, 0.5, 0, 0, 0}));
}

TEST(Intermediate, OfRaggedEntriesEndsWithTheLongest) {
  SessionConfig config = with(full_cache(), "probabilities");
  config.batch = 2;
  Sequence sequence(config);
  sequence.load({3, 0});
  sequence.append({1, 1});
  EXPECT_EQ(sequence.qk(), (Numbers{0.25, 0.25, 0.25, 0.25, 1, 0, 0, 0}));
}

}  // namespace
}  // namespace kvcheck::kernels
