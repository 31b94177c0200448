// Facts about the error bound: its terms by hand.
#include "model/error_bound.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace kvcheck::model {
namespace {

constexpr double kU = 0x1p-24;
constexpr double kOwn = 1 + 0x1p-10;  // The bound's own arithmetic.

/// Relative error of k roundings in f32.
double roundings(double k, double u = kU) { return std::pow(1 - u, -k) - 1; }

KeyTerm key_of(double product, double magnitude, double bias, double weight) {
  return {
      .product = product, .magnitude = magnitude, .bias = bias, .weight = weight, .score = product};
}

TEST(CompoundRoundoff, IsBelowGammaAndAboveItsFirstOrder) {
  for (const double k : {1.0, 7.0, 66.0, 5000.0}) {
    EXPECT_LT(compound_roundoff(k, 0x1p-11), k < 2048 ? k * 0x1p-11 / (1 - k * 0x1p-11) * 1.0001
                                                      : std::numeric_limits<double>::infinity());
    EXPECT_GT(compound_roundoff(k, 0x1p-11), k * 0x1p-11);
  }
  EXPECT_EQ(compound_roundoff(0, 0.5), 0);
  EXPECT_EQ(compound_roundoff(3, 1), std::numeric_limits<double>::infinity());
}

/// Roundings of the unluckiest term, by carrying out the sum on counts alone.
std::int64_t counted_depth(std::int64_t count, std::int64_t ways, std::int64_t block) {
  std::int64_t total = -1;  // -1: nothing added yet, so that the first addition is exact.
  const auto join = [](std::int64_t a, std::int64_t b) {
    return a < 0 ? b : b < 0 ? a : std::max(a, b) + 1;
  };
  for (std::int64_t begin = 0; begin < count; begin += block) {
    const std::int64_t size = std::min(block, count - begin);
    std::vector<std::int64_t> chains(static_cast<std::size_t>(std::min(ways, size)), -1);
    for (std::int64_t i = 0; i < size; ++i) {
      auto& chain = chains[static_cast<std::size_t>(i) % chains.size()];
      chain = join(chain, 0);
    }
    while (chains.size() > 1) {
      std::vector<std::int64_t> next;
      for (std::size_t i = 0; i < chains.size(); i += 2) {
        next.push_back(i + 1 < chains.size() ? join(chains[i], chains[i + 1]) : chains[i]);
      }
      chains = next;
    }
    total = join(total, chains[0]);
  }
  return total;
}

TEST(SumDepth, IsWhatTheUnluckiestTermMeets) {
  for (std::int64_t count = 1; count < 70; ++count) {
    EXPECT_EQ(sum_depth(static_cast<double>(count), 0, 0), count - 1);
    for (const std::int64_t ways : {1, 2, 3, 4, 8, 16, 100}) {
      for (const std::int64_t block : {1, 4, 7, 16, 200}) {
        const double depth = sum_depth(static_cast<double>(count), ways, block);
        const auto counted = static_cast<double>(counted_depth(count, ways, block));
        EXPECT_GE(depth, counted) << count << ' ' << ways << ' ' << block;
        // A block's size is taken to be whole.
        EXPECT_LE(depth, counted + 1) << count << ' ' << ways << ' ' << block;
      }
    }
  }
}

TEST(RowBound, OneKeyLeavesOnlyRoundingOfSumsAndStore) {
  RowBound bound({});
  const KeyTerm key = key_of(2.0, 3.0, 0, 1.0);
  bound.set_row(8, {&key, 1}, 1.0);
  const BoundTerms terms =
      bound.terms({.spread = 0, .magnitude = 5.0, .values = 5.0, .widest = 0}, -5.0);
  EXPECT_EQ(terms.weights, 0);
  // The product with the weight, its normalisation; nothing is added.
  EXPECT_NEAR(terms.sums / (kOwn * roundings(3) * 5.0), 1, 1e-5);
  EXPECT_DOUBLE_EQ(terms.underflow, kOwn * (2 * 0x1p-150 * 5.0 + 0x1p-150 + 0x1p-150 * 5.0));
  EXPECT_DOUBLE_EQ(terms.store, kOwn * 0x1p-150);  // f32 into f32 rounds nothing.
  EXPECT_DOUBLE_EQ(bound.terms({}, 0).total(), kOwn * 0x1p-150);
  EXPECT_DOUBLE_EQ(terms.total(), terms.weights + terms.sums + terms.underflow + terms.store);
}

TEST(RowBound, StoresIntoNarrowerTypesRound) {
  ArithmeticProfile profile;
  profile.output_type = ElementType::f16;
  profile.max_rescales = 1;  // Divides at the end.
  RowBound bound(profile);
  const KeyTerm key = key_of(0, 0, 0, 1.0);
  bound.set_row(8, {&key, 1}, 1.0);
  EXPECT_NEAR(bound.terms({.magnitude = 5.0, .values = 5.0}, 5.0).store,
              kOwn * (5 * (0x1p-11 + 2 * kU) + 0x1p-25), 1e-8);
}

/// Logit errors of the first of two keys with logits 0 and 3.
double first_lambda(const ArithmeticProfile& profile, double bias = 0, double operand_error = 0) {
  std::vector<KeyTerm> keys{key_of(-bias, 2.0, bias, 0.25), key_of(3.0, 4.0, 0, 0.75)};
  keys[0].operand_error = operand_error;
  RowBound bound(profile);
  bound.set_row(6, keys, 1.5);
  return std::log1p(bound.growth()[0]);
}

TEST(RowBound, EachDeclaredHabitAddsItsShareToTheLogitError) {
  const auto with = [](auto set) {
    ArithmeticProfile p;
    set(p);
    return p;
  };
  const double exp_error = 2 * kU;
  const double plain = roundings(9) * 2.0 + kU * 3.0 + exp_error;
  const auto expect = [](double lambda, double expected) {
    EXPECT_NEAR(lambda / expected, 1, 3e-4);
  };
  expect(first_lambda({}), plain);
  expect(first_lambda(with([](auto& p) { p.truncates = true; })),
         roundings(9, 2 * kU) * 2 + 2 * kU * 3 + exp_error);
  // Two keys allow one rise at most.
  const auto online = with([](auto& p) { p.max_rescales = 100; });
  expect(first_lambda(online), plain + exp_error);
  expect(first_lambda(with([](auto& p) { p.splits = 4; })), plain + exp_error);
  expect(first_lambda(with([](auto& p) {
           p.max_rescales = 100;
           p.rescale_block = 2;
         })),
         plain);
  expect(first_lambda(with([](auto& p) { p.scale_on_operands = true; })), plain + 3 * 2 * kU);
  expect(first_lambda(with([](auto& p) { p.exact_products = true; })), plain - 2 * kU);
  expect(first_lambda(with([](auto& p) { p.dequantise_roundings = 1; })), plain + 2 * kU);
  expect(first_lambda(with([](auto& p) { p.dot_ways = 6; })), plain - 2 * 2 * kU);
  expect(first_lambda(with([](auto& p) { p.operand_roundoff = 0x1p-13; })), plain + 4 * 0x1p-13);
  expect(first_lambda(with([](auto& p) { p.product_roundoff = 0x1p-13; })), plain + 2 * 0x1p-13);
  expect(first_lambda(with([](auto& p) { p.fused_shift = true; })), plain + 6 * kU);
  expect(first_lambda({}, 0, 0x1p-13), plain + 0x1p-13);
  const auto summed = with([](auto& p) {
    p.probability_roundoff = 0x1p-13;
    p.sums_stored_weights = true;
  });
  expect(first_lambda(summed), plain + 0x1p-13);
  // With a bias of 1 the product is -1 and the logit 0; in base two both are rounded twice.
  expect(first_lambda({}, 1.0), plain);
  expect(first_lambda(with([](auto& p) { p.base_two = true; }), 1.0), plain + 2 * kU * 2);
  expect(first_lambda(with([](auto& p) { p.logit_roundoff = 0x1p-13; }), 1.0), plain + 0x1p-13);
}

TEST(RowBound, LogitsRoundWhereTheBiasIsAdded) {
  std::vector<KeyTerm> keys{key_of(-1.0, 1.0, -4.0, 0.1), key_of(0, 1.0, 0, 0.9)};
  RowBound bound({});
  bound.set_row(1, keys, 1.1);
  EXPECT_NEAR(std::log1p(bound.growth()[0]) / kU, 4 + 5 + 5 + 2, 1e-3);
}

TEST(RowBound, SoftcapDampsTheLogitErrorByItsSlope) {
  const double cap = 2;
  const double product = 5;
  const double score = cap * std::tanh(product / cap);
  KeyTerm key = key_of(product, product, 0, 1);
  key.score = score;
  key.operand_error = 1e-6;
  ArithmeticProfile profile;
  profile.exp_error = 0;
  RowBound bound(profile);
  bound.set_row(1, {&key, 1}, 1, cap);
  const double slope = 1 - (score / cap) * (score / cap);
  // Product, scale, scale, product with it; division or reciprocal; tanh and the product with cap.
  EXPECT_NEAR(std::log1p(bound.growth()[0]),
              slope * (1e-6 + (4 + 2) * kU * product) + (8 + 1) * kU * score, 1e-11);
}

TEST(RowBound, SinksCostNoDotProductButTheirShift) {
  KeyTerm sink = key_of(4, 0, 0, 0.5);
  sink.score = 4;
  const std::vector<KeyTerm> keys{key_of(3, 3, 0, 0.25), key_of(2, 2, 0, 0.25), sink};
  RowBound bound({});
  bound.set_row(8, keys, 2, 30);
  // A kernel may leave it out of the maximum: the distance from 3 then counts.
  EXPECT_NEAR(std::log1p(bound.growth()[2]) / kU, 2 + 1, 1e-4);
}

TEST(RowBound, RescalesAreNoMoreThanTheLargerKeys) {
  ArithmeticProfile profile;
  profile.max_rescales = 1 << 20;
  profile.accumulator_roundoff = 0x1p-50;
  std::vector<KeyTerm> keys;
  for (int j = 0; j < 40; ++j) keys.push_back(key_of(j, j, 0, 1.0 / 40));
  RowBound bound(profile);
  bound.set_row(1, keys, 1.6);
  for (std::size_t j = 10; j < 40; ++j) {
    EXPECT_NEAR(std::log1p(bound.growth()[j]) / profile.exp_error, 40.0 - static_cast<double>(j),
                1e-3);
  }
  // Equal logits without any error never rise.
  for (KeyTerm& key : keys) key = key_of(0, 0, 0, 1.0 / 40);
  bound.set_row(1, keys, 40);
  EXPECT_NEAR(std::log1p(bound.growth()[0]) / profile.exp_error, 1, 1e-5);
}

TEST(RowBound, FewKeysAreRankedAsMany) {
  ArithmeticProfile profile;
  profile.max_rescales = 1 << 20;
  profile.accumulator_roundoff = 0x1p-50;
  for (const int count : {2, 31, 32, 33}) {
    std::vector<KeyTerm> keys;
    for (int j = 0; j < count; ++j) keys.push_back(key_of(j, j, 0, 1.0 / count));
    RowBound bound(profile);
    bound.set_row(1, keys, 1.6);
    for (int j = 0; j < count; ++j) {
      if (count - j > 31) continue;  // Beyond the buckets, where all keys count.
      EXPECT_NEAR(std::log1p(bound.growth()[static_cast<std::size_t>(j)]) / profile.exp_error,
                  count - j, 1e-3)
          << j << " of " << count;
    }
  }
}

/// Two halves, merged once: all keys may be rescaled then but the one that none other exceeds.
TEST(RowBound, OneMergeRescalesAllButTheLargestKey) {
  ArithmeticProfile profile;
  profile.splits = 2;
  profile.accumulator_roundoff = 0x1p-50;
  for (const int count : {2, 5, 40}) {
    std::vector<KeyTerm> keys;
    for (int j = 0; j < count; ++j) keys.push_back(key_of(j % 7, j % 7, 0, 1.0 / count));
    keys[1] = key_of(9, 9, 0, 1.0 / count);
    RowBound bound(profile);
    bound.set_row(1, keys, 1.6);
    for (std::size_t j = 0; j < keys.size(); ++j) {
      EXPECT_NEAR(std::log1p(bound.growth()[j]) / profile.exp_error, j == 1 ? 1 : 2, 1e-3) << j;
    }
    // Of two largest, either may exceed the other.
    keys[0] = keys[1];
    bound.set_row(1, keys, 1.6);
    EXPECT_NEAR(std::log1p(bound.growth()[1]) / profile.exp_error, 2, 1e-3);
  }
}

TEST(RowBound, RowsBeforeLeaveNoTrace) {
  ArithmeticProfile profile;
  profile.max_rescales = 7;
  RowBound used(profile);
  for (const std::size_t count : {3u, 1u, 300u, 3u, 40u, 1u}) {
    for (const std::int64_t head_size : {8, 64, 8}) {
      std::vector<KeyTerm> keys;
      for (std::size_t j = 0; j < count; ++j) {
        const double logit = std::sin(static_cast<double>(j + count));
        keys.push_back(key_of(logit, 2, 0.25, 1.0 / static_cast<double>(count)));
      }
      RowBound fresh(profile);
      for (RowBound* bound : {&used, &fresh}) bound->set_row(head_size, keys, 2, 5);
      const LaneSums sums{0.5, 0.75, 3, 2, 0.125, 0.25};
      const BoundTerms a = used.terms(sums, 0.5), b = fresh.terms(sums, 0.5);
      EXPECT_EQ(a.total(), b.total());
      EXPECT_EQ(a.weights, b.weights);
      EXPECT_EQ(used.weight_error(0, 0.5), fresh.weight_error(0, 0.5));
      EXPECT_EQ(used.lse_error(1.5, ElementType::f32), fresh.lse_error(1.5, ElementType::f32));
    }
  }
}

TEST(RowBound, GrowthIsNeverBelowTheExponential) {
  for (double u = 1e-9; u < 1; u *= 1.7) {
    ArithmeticProfile profile;
    profile.accumulator_roundoff = 0;
    profile.exp_error = u;
    const KeyTerm key = key_of(1, 1, 0, 1);
    RowBound bound(profile);
    bound.set_row(4, {&key, 1}, 1.0);
    // exp may be too small by u, and the sum with it: 1/(1-u) - 1.
    EXPECT_GE(bound.growth()[0], u / (1 - u) * (1 - 1e-13));
    EXPECT_LE(bound.growth()[0], u / (1 - u) * 1.001);
  }
}

TEST(RowBound, NarrowWeightsAddTheirRoundoffAndTheirSubnormals) {
  const KeyTerm key = key_of(0, 0, 0, 0.5);
  const LaneSums sums{.spread = 0, .magnitude = 2.0, .values = 4.0, .widest = 2.0};
  ArithmeticProfile profile;
  profile.probability_roundoff = 0x1p-11;
  profile.max_rescales = 1;
  RowBound online(profile);
  online.set_row(4, {&key, 1}, 2.0);
  EXPECT_NEAR(online.terms(sums, 0).sums, 0x1p-11 * 2.0, 2e-6);
  EXPECT_NEAR(online.terms(sums, 0).underflow / (0x1p-25 * 4.0 / 2.0), 1, 2e-3);

  profile.max_rescales = 0;
  RowBound two_pass(profile);
  two_pass.set_row(4, {&key, 1}, 2.0);
  EXPECT_NEAR(two_pass.terms(sums, 0).underflow / (0x1p-25 * 4.0), 1, 2e-3);

  profile.probability_roundoff = 0x1p-8;
  profile.exp_flushes = true;
  RowBound flushing(profile);
  flushing.set_row(4, {&key, 1}, 2.0);
  // Of a stored weight, of one made by exp, of a product; of the row sum.
  EXPECT_NEAR(flushing.terms(sums, 3.0).underflow /
                  ((0x1p-134 + 0x1p-127) * 4.0 + 0x1p-126 + 0x1p-127 * 3.0),
              1, 2e-3);
}

TEST(RowBound, ValuesHeldOtherwiseAreATermOfTheirOwn) {
  const std::vector<KeyTerm> keys{key_of(1, 1, 0, 0.5), key_of(1, 1, 0, 0.5)};
  RowBound bound({});
  bound.set_row(8, keys, 2);
  const LaneSums exact{.spread = 1e-7, .magnitude = 1, .values = 2, .widest = 1};
  LaneSums held = exact;
  held.value_error = 0.125;
  EXPECT_EQ(bound.terms(exact, 0.5).operands, 0);
  EXPECT_NEAR(bound.terms(held, 0.5).operands, kOwn * 0.125, 1e-6);
  EXPECT_GT(bound.terms(held, 0.5).sums, bound.terms(exact, 0.5).sums);
}

TEST(RowBound, HopelessArithmeticIsCappedAndNeverNan) {
  ArithmeticProfile profile;
  profile.accumulator_roundoff = 0.3;
  profile.exp_error = 1e6;
  const std::vector<KeyTerm> keys{key_of(1e30, 1e30, 0, 1), key_of(-1e30, 1e30, 0, 0)};
  RowBound bound(profile);
  bound.set_row(64, keys, 1.0);
  LaneSums sums{.spread = 7, .magnitude = 3, .values = 3, .widest = 2};
  EXPECT_DOUBLE_EQ(bound.terms(sums, 1).weights, kOwn * 2);
  EXPECT_TRUE(std::isfinite(bound.terms({}, 0).total()));
  sums.value_error = 0.5;
  sums.widest_error = 0.75;
  EXPECT_DOUBLE_EQ(bound.terms(sums, 1).operands, kOwn * 0.75);
  EXPECT_GT(bound.lse_error(1e30, ElementType::f32), 1e30);
  profile.accumulator_roundoff = 0.6;
  profile.truncates = true;  // No digit is left.
  RowBound blind(profile);
  blind.set_row(64, keys, 1.0);
  EXPECT_EQ(blind.terms(sums, 1).total(), std::numeric_limits<double>::infinity());
  EXPECT_FALSE(std::isnan(blind.terms({}, 0).total()));
}

}  // namespace
}  // namespace kvcheck::model
