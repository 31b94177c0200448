// Facts about what a report says beside the bound.
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "model/bound_reports.h"
#include "tests/model/simulated_kernel_fills.h"
#include "tests/model/simulated_kernel_pass.h"

namespace kvcheck::model {
namespace {

double largest_of(const std::vector<double>& data) {
  double out = 0;
  for (const double x : data) out = std::max(out, std::abs(x));
  return out;
}

RowExtent extent_of(const RowData& row) {
  return {.head_size = static_cast<std::int64_t>(row.head_size),
          .keys = static_cast<std::int64_t>(row.count()),
          .scale = row.scale,
          .query_max = largest_of(row.query),
          .key_max = largest_of(row.keys),
          .value_max = largest_of(row.values)};
}

TEST(APrioriBound, IsTheFormulaOfItsTerms) {
  ArithmeticProfile profile;
  profile.output_type = ElementType::f16;
  profile.probability_roundoff = 0x1p-11;
  const RowExtent row{
      .head_size = 64, .keys = 100, .scale = 0.125, .query_max = 2, .key_max = 3, .value_max = 4};
  const double u = 0x1p-24;
  const double expected = 8 * (67 * u * 0.125 * 64 * 6 + u * std::log(100) + 2 * u) +
                          4 * (0x1p-11 + 102 * u + 99 * u + 0x1p-11) + 0x1p-25;
  EXPECT_NEAR(a_priori_bound(profile, row) / expected, 1, 3e-4);
}

TEST(APrioriBound, CoversTheRunningBoundOfEveryRow) {
  RowSource source(8);
  for (const bool online : {false, true}) {
    ArithmeticProfile profile;
    profile.output_type = ElementType::f16;
    if (online) profile.max_rescales = 1 << 20;
    for (const auto& [fill, name] : kRowFills) {
      for (const std::size_t count : {1UL, 5UL, 60UL, 700UL}) {
        const RowData row = source.row(fill, Storage::f16, count, 32, 16, false);
        const RowTruth truth = evaluate<long double>(row);
        RowBound bound(profile);
        for (const BoundTerms& terms : bounds_of(bound, row, truth)) {
          // The a-priori form leaves out products of errors.
          EXPECT_LE(terms.total(), a_priori_bound(profile, extent_of(row)) * 1.01) << name;
        }
      }
    }
  }
}

TEST(ExpectedSize, LiesBetweenTheErrorsOfHealthyKernelsAndTheBound) {
  RowSource source(9);
  const RowStyle style;
  const ArithmeticProfile profile = profile_of(style, ElementType::f32, false);
  double largest = 0;
  for (int i = 0; i < 60; ++i) {
    const RowData row = source.row(RowFill::random, Storage::f32, 300, 64, 32, false);
    const RowTruth truth = evaluate<long double>(row);
    RowBound bound(profile);
    RowBound expected(profile, 4);
    const auto bounds = bounds_of(bound, row, truth);
    const auto sizes = bounds_of(expected, row, truth);
    const auto observed = RowKernel<F32>(row, style, 1).run();
    for (std::size_t c = 0; c < row.lanes; ++c) {
      EXPECT_LT(sizes[c].total(), 0.7 * bounds[c].total());
    }
    const auto ratios = ratios_of(observed, truth, sizes);
    largest = std::max(largest, *std::max_element(ratios.begin(), ratios.end()));
  }
  EXPECT_LT(largest, 1);
  EXPECT_GT(largest, 0.01);
}

TEST(LseError, OfEqualLogitsIsThatOfCountingKeys) {
  std::vector<KeyTerm> keys(256, KeyTerm{.weight = 1.0 / 256});
  ArithmeticProfile profile;
  RowBound bound(profile);
  bound.set_row(8, keys, 256);
  const double u = 0x1p-24;
  const double lse = std::log(256.0);
  // exp, 255 additions, log, and adding the maximum.
  EXPECT_NEAR(bound.lse_error(lse, ElementType::f32) / (u * (2 + 255 + 2 * lse + lse)), 1, 2e-3);
  EXPECT_NEAR(bound.lse_error(lse, ElementType::f16) / (0x1p-11 * lse), 1, 1e-2);
}

TEST(SignedMean, LimitsAreHoeffdings) {
  SignedMean mean;
  EXPECT_EQ(mean.limit(1e-6), std::numeric_limits<double>::infinity());
  EXPECT_EQ(mean.symmetric_limit(1e-6), std::numeric_limits<double>::infinity());
  EXPECT_EQ(mean.mean(), 0);
  for (int i = 0; i < 50; ++i) mean.add(0.01);
  for (int i = 0; i < 50; ++i) mean.add(-0.03);
  EXPECT_NEAR(mean.mean(), -0.01, 1e-15);
  EXPECT_NEAR(mean.limit(1e-6), std::sqrt(2 * std::log(2e6) / 100), 1e-12);
  EXPECT_NEAR(mean.symmetric_limit(1e-6),
              std::sqrt(2 * std::log(2e6) * 50 * (0.0001 + 0.0009)) / 100, 1e-12);
  mean.add(-7);
  EXPECT_NEAR(mean.mean() * 101, -2, 1e-12);  // Cut to -1.
}

TEST(SignedMean, RarelyAlarmsOnSymmetricErrors) {
  std::mt19937_64 engine(4);
  int alarms = 0;
  for (int run = 0; run < 2000; ++run) {
    SignedMean mean;
    for (int i = 0; i < 64; ++i) {
      const double size = std::exp(-static_cast<double>(engine() % 8));
      mean.add((engine() & 1) != 0 ? size : -size);
    }
    if (std::abs(mean.mean()) > mean.symmetric_limit(0.01)) ++alarms;
  }
  EXPECT_LE(alarms, 2000 * 0.01);
}

/// Mean signed ratios of a kernel's output store, each row a block, values around `centre`.
SignedMean store_bias(bool truncates) {
  RowSource source(12);
  const ArithmeticProfile profile = profile_of({}, ElementType::bf16, false);
  SignedMean out;
  for (int i = 0; i < 200; ++i) {
    const RowData row = source.row(RowFill::equal, Storage::f32, 20, 16, 16, false);
    const RowTruth truth = evaluate<long double>(row);
    RowBound bound(profile);
    const auto bounds = bounds_of(bound, row, truth);
    const auto lanes = RowKernel<F32>(row, {}, 1).run();
    double sum = 0;
    for (std::size_t c = 0; c < lanes.size(); ++c) {
      const Bits cast{8, 8, truncates};
      sum += (cast.r(lanes[c]) - static_cast<double>(truth.output[c])) / bounds[c].total();
    }
    out.add(sum / static_cast<double>(lanes.size()));
  }
  return out;
}

TEST(SignedMean, FindsATruncatingStoreAndPassesARoundingOne) {
  const SignedMean rounding = store_bias(false);
  EXPECT_LT(std::abs(rounding.mean()), rounding.symmetric_limit(1e-6));
  const SignedMean truncating = store_bias(true);
  EXPECT_GT(std::abs(truncating.mean()), truncating.symmetric_limit(1e-6));
  EXPECT_GT(std::abs(truncating.mean()), truncating.limit(1e-6));
}

}  // namespace
}  // namespace kvcheck::model
