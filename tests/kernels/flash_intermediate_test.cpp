// Intermediates of cpu-flash by hand, and bit for bit what its outputs were made of.
#include "kernels/cpu/flash/flash_intermediate.h"

#include <cmath>

#include <gtest/gtest.h>

#include "kernels/cpu/flash/cpu_flash.h"
#include "tests/kernels/cpu_sequence.h"

namespace kvcheck::kernels {
namespace {

template <class T>
T must(Answer<T> answer) {
  if (const auto* refusal = std::get_if<Refusal>(&answer)) ADD_FAILURE() << refusal->reason;
  return std::get<T>(std::move(answer));
}

/// One head of one lane, scale 1: two queries of `query` against keys 1 and 2 with values 0 and 1.
StepResult step_of(SessionConfig config, const char* stage, double query) {
  config.scale = 1;
  config.qk_output = stage;
  StepRequest step;
  step.tokens = step.queries = {2};
  step.query = tensor_of(ElementType::f32, {1, 2, 1, 1}, {query, query});
  step.key = tensor_of(ElementType::f32, {1, 2, 1, 1}, {1, 2});
  step.value = tensor_of(ElementType::f32, {1, 2, 1, 1}, {0, 1});
  if (config.mask != "none") {
    step.mask = tensor_of(ElementType::f32, {1, 1, 2, 2}, {0, 0, 0.5, -kInfinity});
  }
  return must(must(make_cpu_flash()->open(config))->step(step));
}

Numbers intermediate(const SessionConfig& config, const char* stage, double query = 3) {
  return numbers_of(step_of(config, stage, query).qk.value());
}

TEST(FlashIntermediate, IsAbsentUnlessAsked) {
  EXPECT_FALSE(step_of(full_cache(), "none", 1).qk.has_value());
}

TEST(FlashIntermediate, OfAttentionHoldsScoresOfEveryKey) {
  SessionConfig config = attention();
  EXPECT_EQ(intermediate(config, "raw"), (Numbers{3, 6, 3, 6}));
  config.softcap = 2;
  const Numbers capped = intermediate(config, "softcapped");
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(capped[i], 2 * std::tanh(i % 2 == 0 ? 1.5 : 3.0), 1e-6);
  }
}

TEST(FlashIntermediate, AfterTheBiasHidesWhatIsNotSeen) {
  SessionConfig config = attention();
  EXPECT_EQ(intermediate(config, "biased"), (Numbers{3, -kInfinity, 3, 6}));
  config.mask = "additive";
  EXPECT_EQ(intermediate(config, "biased"), (Numbers{3, -kInfinity, 3.5, -kInfinity}));
  EXPECT_EQ(intermediate(config, "probabilities"), (Numbers{1, 0, 1, 0}));
}

TEST(FlashIntermediate, OfGqaHolds0ForKeysThatAreNotSeen) {
  EXPECT_EQ(intermediate(full_cache(), "biased"), (Numbers{3, 0, 3, 6}));
  // Logits ln(2) apart: 1/3 and 2/3.
  const Numbers shares = intermediate(full_cache(), "probabilities", std::log(2.0));
  EXPECT_EQ(shares[0], 1);
  EXPECT_EQ(shares[1], 0);
  EXPECT_NEAR(shares[2], 1.0 / 3, 1e-6);
  EXPECT_NEAR(shares[3], 2.0 / 3, 1e-6);
}

TEST(FlashIntermediate, DoesNotChangeTheOutput) {
  const Tensor plain = step_of(full_cache(), "none", 0.7).output.value();
  EXPECT_EQ(step_of(full_cache(), "probabilities", 0.7).output->bytes, plain.bytes);
}

TEST(FlashIntermediate, ProbabilitiesOfLongRowsAddUpToOne) {
  // 1,100 keys: several tiles and chunks, a tail that is not whole.
  SessionConfig config = full_cache();
  config.capacity = 1100;
  config.qk_output = "probabilities";
  Numbers keys;
  for (int i = 0; i < 1100; ++i) keys.push_back(0.125 * (i % 31));
  StepRequest step;
  step.tokens = {1100};
  step.queries = {1100};
  step.query = tensor_of(ElementType::f32, {1, 1100, 1, 1}, Numbers(1100, 1));
  step.key = step.value = tensor_of(ElementType::f32, {1, 1100, 1, 1}, keys);
  const Numbers shares =
      numbers_of(must(must(make_cpu_flash()->open(config))->step(step)).qk.value());
  for (const std::int64_t query : {0, 63, 64, 511, 512, 1099}) {
    double total = 0;
    for (std::int64_t key = 0; key < 1100; ++key) {
      const double share = shares[static_cast<std::size_t>(query * 1100 + key)];
      if (key > query) {
        EXPECT_EQ(share, 0);
      }
      total += share;
    }
    EXPECT_NEAR(total, 1, 1e-5) << query;
  }
}

}  // namespace
}  // namespace kvcheck::kernels
