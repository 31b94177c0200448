// Every source of error is needed in the bound: with data built to reach it, a kernel of the
// declared arithmetic comes close to its bound, and one whose single source is doubled exceeds it.
//
// Rows of one lane whose values are +1 where the source stretches a weight and -1 where it shrinks
// one leave an output near 0, so that nothing but the source is left in error and in bound.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/model/simulated_kernel_pass.h"

namespace kvcheck::model {
namespace {

/// A kernel on data made for it, and the profile that it claims.
struct Probe {
  RowData row;
  RowStyle style;
  Bits arithmetic;
  ArithmeticProfile profile;
  RowData held;              ///< What the kernel holds, where it is not the row.
  double operand_error = 0;  ///< Of every key's logit.
  double value_error = 0;
};

struct Source {
  const char* name;
  std::function<Probe(bool doubled)> make;
  double least;          ///< Least ratio of the healthy kernel: how tight the term is.
  double least_doubled;  ///< Least ratio of the doubled one.
};

/// Sides of the fraction that a rounding turns up or down.
constexpr double kAbove = 1 + 0x1p-9;
constexpr double kBelow = 1 - 0x1p-9;

Probe blank() {
  Probe out;
  out.row.lanes = 1;
  out.style.output = {};
  out.profile = profile_of(out.style, ElementType::f64, false);
  return out;
}

/// Appends a key of one lane.
void add(RowData& row, double logit, double value, double bias = 0) {
  row.head_size = 1;
  row.query = {1};
  row.keys.push_back(logit);
  row.values.push_back(value);
  row.biases.push_back(bias);
  row.leans.push_back(value < 0 ? -1 : 1);
}

Probe exp_error(bool doubled) {
  Probe out = blank();
  out.profile.exp_error = 0x1p-12;
  out.style.exp_error = doubled ? 0x1p-11 : 0x1p-12;
  add(out.row, 0, 0);
  for (const double value : {1, -1}) add(out.row, -0.5, value);
  return out;
}

Probe rescales(bool doubled) {
  constexpr std::size_t kKeys = 32;
  Probe out = exp_error(doubled);
  out.row = {};
  out.row.lanes = kKeys - 1;
  std::vector<double> weights;
  double sum = 0;
  for (std::size_t j = 0; j < kKeys; ++j) {
    add(out.row, static_cast<double>(j) / 16, 1);
    weights.push_back(std::exp(static_cast<double>(j) / 16));
    sum += weights.back();
  }
  // Lane m sets the first m + 1 keys, which are rescaled more often, against the rest.
  out.row.values.clear();
  std::vector<double> before(1, 0);
  for (const double weight : weights) before.push_back(before.back() + weight / sum);
  for (std::size_t j = 0; j < kKeys; ++j) {
    for (std::size_t m = 0; m < out.row.lanes; ++m) {
      out.row.values.push_back(j <= m ? 1 / before[m + 1] : -1 / (1 - before[m + 1]));
    }
  }
  out.style.tile = 1;
  out.profile.max_rescales = 1000;
  return out;
}

Probe log_of_splits(bool doubled) {
  Probe out = exp_error(doubled);
  out.row = {};
  out.row.lanes = 1;
  for (int j = 0; j < 4096; ++j) add(out.row, 0, j < 2048 ? 1 : -1);
  out.row.leans = {1, -1};
  out.style.splits = 2;
  out.style.merges_by_lse = true;
  out.profile.splits = 2;
  out.profile.merges_by_lse = true;
  out.style.dot_ways = out.style.value_ways = 1;
  return out;
}

Probe tanh_error(bool doubled) {
  Probe out = blank();
  out.profile.tanh_error = 0x1p-12;
  out.style.tanh_error = doubled ? 0x1p-11 : 0x1p-12;
  out.row.softcap = 2;
  add(out.row, 3, 0);
  for (const double value : {1, -1}) add(out.row, 1, value);
  return out;
}

/// Weights whose sum rounds up by half a unit each time, while that of P.V rounds down.
Probe accumulators(bool doubled) {
  Probe out = blank();
  out.arithmetic.bits = out.arithmetic.product_bits = doubled ? 23 : 24;
  add(out.row, 0, 1);
  const double half_unit = std::ldexp(1.0, -out.arithmetic.bits);
  for (int j = 0; j < 512; ++j) {
    add(out.row, std::log(half_unit * kAbove), 1 - 0x1p-7);
  }
  return out;
}

/// Two keys of 256 lanes whose sums round down and up throughout.
Probe dot(bool doubled) {
  constexpr std::size_t kLanes = 256;
  Probe out = blank();
  out.arithmetic.bits = out.arithmetic.product_bits = doubled ? 23 : 24;
  out.row.head_size = kLanes;
  out.row.query.assign(kLanes, 8.0);
  for (const double side : {kBelow, kAbove}) {
    for (std::size_t c = 0; c < kLanes; ++c) {
      out.row.keys.push_back(c == 0 ? 1 : std::ldexp(side, -out.arithmetic.bits));
    }
    out.row.values.push_back(side < 1 ? -1 : 1);
    out.row.biases.push_back(0);
  }
  return out;
}

/// The same truncated; the second key has a negative product and a bias that levels it.
Probe truncation(bool doubled) {
  Probe out = dot(false);
  out.arithmetic.truncates = true;
  out.profile.truncates = !doubled;
  for (std::size_t i = 0; i < out.row.keys.size(); ++i) {
    const double sign = i < out.row.head_size ? 1 : -1;
    const bool first = i % out.row.head_size == 0;
    out.row.keys[i] = sign * (first ? 1 : std::ldexp(kBelow, -23));
  }
  out.row.biases[1] = 16;
  return out;
}

/// Product, scale and the product with it, each as wrong as a search makes them.
Probe scale(bool doubled) {
  Probe out = blank();
  out.arithmetic.bits = out.arithmetic.product_bits = doubled ? 23 : 24;
  const double half_unit = std::ldexp(1.0, -out.arithmetic.bits);
  const auto r = [&](double x) { return out.arithmetic.r(x); };
  out.row.scale = 1 + 2048 * half_unit + kBelow * half_unit;
  std::mt19937_64 engine(5);
  double best = 0;
  double query = 1;
  double key = 1;
  for (int i = 0; i < 100000; ++i) {
    const double q = r(1 + 1e-3 * static_cast<double>(engine() % 4096) / 4096);
    const double k = r(1 + 1e-3 * static_cast<double>(engine() % 4096) / 4096);
    const double error = q * k * out.row.scale - r(r(q * k) * r(out.row.scale));
    if (error > best) std::tie(best, query, key) = std::tuple(error, q, k);
  }
  constexpr double kSize = 8;
  add(out.row, key, -1);
  add(out.row, -key, 1, r(2 * kSize * query * key));
  out.row.query = {kSize * query};
  return out;
}

/// Weights that stand right above and below the middle of two stored ones.
Probe probability_cast(bool doubled) {
  Probe out = blank();
  const int bits = doubled ? 7 : 8;
  out.style.weights = {bits, -1100};
  out.profile.probability_roundoff = 0x1p-8;
  add(out.row, 0, 0);
  const double middle = std::ldexp(1.0, -bits);
  add(out.row, std::log(0.5 * (1 + middle * kAbove)), 1);
  add(out.row, std::log(0.5 * (1 + middle * kBelow)), -1);
  return out;
}

Probe summed_cast(bool doubled) {
  Probe out = probability_cast(doubled);
  out.style.sums_stored_weights = out.profile.sums_stored_weights = true;
  return out;
}

Probe logit_store(bool doubled) {
  Probe out = blank();
  const int bits = doubled ? 10 : 11;
  out.style.logits = {bits, -1100};
  out.profile.logit_roundoff = 0x1p-11;
  for (const double side : {kAbove, kBelow}) {
    add(out.row, 4 * (1 + std::ldexp(side, -bits)), side > 1 ? 1 : -1);
  }
  return out;
}

Probe output_store(bool doubled) {
  Probe out = blank();
  out.style.output = {doubled ? 10 : 11, -1100};
  out.profile.output_type = ElementType::f16;
  add(out.row, 0, 1 + std::ldexp(kBelow, -out.style.output.bits));
  return out;
}

Probe output_subnormal(bool doubled) {
  Probe out = blank();
  out.style.output = {11, doubled ? -23 : -24};
  out.profile.output_type = ElementType::f16;
  add(out.row, 0, std::ldexp(kBelow, out.style.output.least - 1));
  return out;
}

Probe weight_subnormals(bool doubled) {
  Probe out = blank();
  out.style.weights = {11, doubled ? -23 : -24};
  out.profile.probability_roundoff = 0x1p-11;
  add(out.row, 0, 0);
  const double lost = std::ldexp(kBelow, out.style.weights.least - 1);
  for (int j = 0; j < 64; ++j) add(out.row, std::log(lost), 1);
  return out;
}

Probe flushed_exp(bool doubled) {
  Probe out = blank();
  out.style.flushes_below = doubled ? 0x1p-125 : 0x1p-126;
  out.profile.exp_flushes = true;
  add(out.row, 0, 0);
  const double lost = out.style.flushes_below * kBelow;
  for (int j = 0; j < 64; ++j) add(out.row, std::log(lost), 0x1p100);
  return out;
}

/// Both operands round up and V away from or towards 0; a negative product turns the error round.
Probe operand_cast(bool doubled) {
  Probe out = blank();
  const int bits = doubled ? 10 : 11;
  out.style.operands = {bits, -1100};
  out.profile.operand_roundoff = 0x1p-11;
  const double x = 1 + std::ldexp(kAbove, -bits);
  add(out.row, x, x);
  add(out.row, -x, -1 - std::ldexp(kBelow, -bits), 2);
  out.row.query = {x};
  return out;
}

Probe value_cast(bool doubled) {
  Probe out = operand_cast(doubled);
  out.row = {};
  out.row.lanes = 1;
  add(out.row, 0, 1 + std::ldexp(kAbove, -out.style.operands.bits));
  return out;
}

Probe product_cast(bool doubled) {
  Probe out = blank();
  out.arithmetic.product_bits = doubled ? 10 : 11;
  out.profile.product_roundoff = 0x1p-11;
  for (const double side : {kAbove, kBelow}) {
    add(out.row, 16 * (1 + std::ldexp(side, -out.arithmetic.product_bits)), side > 1 ? 1 : -1);
  }
  return out;
}

Probe held_values(bool doubled) {
  Probe out = blank();
  out.value_error = 0x1p-8;
  for (int j = 0; j < 4; ++j) add(out.row, 0, 1);
  out.held = out.row;
  for (double& v : out.held.values) v += doubled ? 0x1p-7 : 0x1p-8;
  return out;
}

Probe held_keys(bool doubled) {
  Probe out = blank();
  out.operand_error = 0x1p-8;
  for (const double value : {1, -1}) add(out.row, 1, value);
  out.held = out.row;
  for (std::size_t j = 0; j < 2; ++j) {
    out.held.keys[j] += out.row.values[j] * (doubled ? 0x1p-7 : 0x1p-8);
  }
  return out;
}

struct Judged {
  double output = 0;
  double lse = 0;
};

Judged judge(const Probe& probe) {
  RowTruth truth = evaluate<long double>(probe.row);
  for (KeyTerm& key : truth.terms) key.operand_error = probe.operand_error;
  RowBound bound(probe.profile);
  const auto bounds = bounds_of(bound, probe.row, truth, probe.value_error);
  const RowData& held = probe.held.count() > 0 ? probe.held : probe.row;
  RowKernel<Bits> kernel(held, probe.style, 1, probe.arithmetic);
  const std::vector<double> ratios = ratios_of(kernel.run(), truth, bounds);
  const auto lse = static_cast<double>(truth.lse);
  return {*std::max_element(ratios.begin(), ratios.end()),
          std::abs(kernel.lse() - lse) / bound.lse_error(lse, ElementType::f64)};
}

class Sources : public testing::TestWithParam<Source> {};

INSTANTIATE_TEST_SUITE_P(
    ErrorBound, Sources,
    testing::Values(
        Source{"exp", exp_error, 0.9, 1.5}, Source{"rescales", rescales, 0.5, 1.01},
        Source{"log_of_splits", log_of_splits, 0.5, 1.01}, Source{"tanh", tanh_error, 0.9, 1.5},
        Source{"accumulators", accumulators, 0.9, 1.5}, Source{"dot", dot, 0.9, 1.5},
        Source{"truncation", truncation, 0.9, 1.5}, Source{"scale", scale, 0.5, 1.01},
        Source{"probability_cast", probability_cast, 0.9, 1.5},
        Source{"summed_cast", summed_cast, 0.9, 1.5}, Source{"logit_store", logit_store, 0.9, 1.5},
        Source{"output_store", output_store, 0.9, 1.5},
        Source{"output_subnormal", output_subnormal, 0.9, 1.5},
        Source{"weight_subnormals", weight_subnormals, 0.9, 1.5},
        Source{"flushed_exp", flushed_exp, 0.9, 1.5},
        Source{"operand_cast", operand_cast, 0.8, 1.5}, Source{"value_cast", value_cast, 0.9, 1.5},
        Source{"product_cast", product_cast, 0.9, 1.5},
        Source{"held_values", held_values, 0.9, 1.5}, Source{"held_keys", held_keys, 0.9, 1.5}),
    [](const auto& tested) { return std::string(tested.param.name); });

TEST_P(Sources, ReachTheBoundAndExceedItWhenDoubled) {
  const double healthy = judge(GetParam().make(false)).output;
  const double doubled = judge(GetParam().make(true)).output;
  RecordProperty("healthy", std::to_string(healthy));
  RecordProperty("doubled", std::to_string(doubled));
  if (std::getenv("KVCHECK_BOUND_ELEMENTS") != nullptr) {
    std::printf("SOURCE %-18s | healthy %.4f | doubled %.4f\n", GetParam().name, healthy, doubled);
  }
  EXPECT_LE(healthy, 1);
  EXPECT_GE(healthy, GetParam().least);
  EXPECT_GE(doubled, GetParam().least_doubled);
}

TEST(ErrorBoundSources, RowSumsReachTheBoundOfTheLogSumExp) {
  EXPECT_LE(judge(accumulators(false)).lse, 1);
  EXPECT_GE(judge(accumulators(false)).lse, 0.9);
  EXPECT_GE(judge(accumulators(true)).lse, 1.5);
}

}  // namespace
}  // namespace kvcheck::model
