// Simulated kernels of every arithmetic and order stay within the bound that their profile gives.
//
// KVCHECK_BOUND_ELEMENTS sets how many output elements are judged in all (default 300,000); from a
// million on each style prints its largest and median ratio per fill.
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include <boost/multiprecision/cpp_bin_float.hpp>
#include <gtest/gtest.h>

#include "tests/model/simulated_kernel_fills.h"
#include "tests/model/simulated_kernel_pass.h"

namespace kvcheck::model {
namespace {

struct Case {
  const char* name;
  Storage storage;
  ElementType output;
  RowStyle style;
};

constexpr auto kF32 = ElementType::f32;
constexpr auto kF16 = ElementType::f16;
constexpr auto kBf16 = ElementType::bf16;
constexpr auto kF64 = ElementType::f64;

RowStyle throughout(ElementType type, RowStyle style) {
  style.accumulator = type;
  style.exp_error = 2 * unit_roundoff(type);
  style.tanh_error = 4 * unit_roundoff(type);
  return style;
}

std::vector<Case> f32_cases() {
  return {
      {"f32 sequential", Storage::f32, kF32, {}},
      {"f32 sequential fma", Storage::f32, kF32, {.fma = true}},
      {"f32 order undeclared", Storage::f32, kF32, {.value_ways = 4, .declares_order = false}},
      {"f32 backwards", Storage::f32, kF32, {.backwards = true, .reciprocal = true}},
      {"f32 pairwise", Storage::f32, kF32, {.dot_ways = 1 << 20, .value_ways = 1 << 20}},
      {"f32 4 ways fma", Storage::f32, kF32, {.fma = true, .dot_ways = 4, .value_ways = 4}},
      {"f32 8 ways", Storage::f32, kF32, {.dot_ways = 8, .value_block = 32}},
      {"f32 16 ways", Storage::f32, kF32, {.fma = true, .dot_ways = 16, .value_block = 64}},
      {"f32 dot blocks of 16", Storage::f32, kF32, {.dot_block = 16, .value_block = 16}},
      {"f32 normalised first",
       Storage::f32,
       kF32,
       {.normalise_first = true, .reciprocal = true, .sink_in_maximum = false}},
      {"f32 scale on query", Storage::f32, kF32, {.scale_on_query = true, .tile = 16}},
      {"f32 scale on operands", Storage::f32, kF32, {.scale_on_operands = true, .dot_ways = 4}},
      {"f32 online, every key", Storage::f32, kF32, {.tile = 1, .reciprocal = true}},
      {"f32 online, tiles of 32",
       Storage::f32,
       kF32,
       {.dot_ways = 8, .tile = 32, .value_block = 32, .sink_in_maximum = false}},
      {"f32 online backwards, base two",
       Storage::f32,
       kF32,
       {.backwards = true, .base_two = true, .tile = 8}},
      {"f32 4 splits", Storage::f32, kF32, {.tile = 16, .splits = 4}},
      {"f32 8 splits by lse, base two",
       Storage::f32,
       kF32,
       {.base_two = true, .tile = 32, .splits = 8, .merges_by_lse = true}},
      {"TF32 operands, f32 sums",
       Storage::f32,
       kF32,
       {.weights = {11, -1100}, .operands = {11, -1100}, .dot_ways = 8, .tile = 64}},
  };
}

std::vector<Case> narrow_cases() {
  const RowStyle flash{.weights = narrowing(kF16),
                       .output = narrowing(kF16),
                       .fma = true,
                       .dot_block = 16,
                       .tile = 64,
                       .value_block = 64};
  RowStyle bf16_flash = flash;
  bf16_flash.weights = bf16_flash.output = narrowing(kBf16);
  bf16_flash.sums_stored_weights = true;
  const RowStyle int_first{.output = narrowing(kF16), .dot_ways = 8, .tile = 32};
  RowStyle int_last = int_first;
  int_last.dequantise_first = false;
  int_last.splits = 2;
  return {
      {"f16, f32 sums, two-pass",
       Storage::f16,
       kF16,
       {.output = narrowing(kF16), .dot_ways = 8, .normalise_first = true}},
      {"f16, f16 weights, tiles", Storage::f16, kF16, flash},
      {"f16, f16 logits and weights",
       Storage::f16,
       kF16,
       {.logits = narrowing(kF16),
        .weights = narrowing(kF16),
        .output = narrowing(kF16),
        .normalise_first = true}},
      {"f16 throughout", Storage::f16, kF16,
       throughout(kF16, {.output = narrowing(kF16), .dot_ways = 4, .tile = 16})},
      {"bf16, bf16 weights summed, tiles", Storage::bf16, kBf16, bf16_flash},
      {"bf16 throughout", Storage::bf16, kBf16,
       throughout(kBf16, {.output = narrowing(kBf16), .dot_ways = 8, .value_block = 8})},
      {"f64 throughout", Storage::f64, kF64,
       throughout(kF64, {.output = {}, .dot_ways = 4, .tile = 16, .splits = 3})},
      {"int8 cache, scales first", Storage::int8, kF16, int_first},
      {"int8 cache, scales last", Storage::int8, kF16, int_last},
      {"int4 cache, scales first", Storage::int4, kF16, int_first},
      {"int4 cache, scales last", Storage::int4, kF16, int_last},
  };
}

/// Those that never round the maximum apart from the logit, for rows of keys alone.
std::vector<Case> fused_cases() {
  return {
      {"f32 fused shift, base two",
       Storage::f32,
       kF32,
       {.fma = true, .base_two = true, .fused_shift = true, .tile = 32, .splits = 3}},
      {"f16 fused shift",
       Storage::f16,
       kF16,
       {.weights = narrowing(kF16),
        .output = narrowing(kF16),
        .fused_shift = true,
        .dot_ways = 16,
        .tile = 64}},
      {"f32 fused shift, 4 splits by lse",
       Storage::f32,
       kF32,
       {.fma = true,
        .base_two = true,
        .fused_shift = true,
        .tile = 16,
        .splits = 4,
        .merges_by_lse = true}},
  };
}

std::vector<Case> all_cases() {
  std::vector<Case> out = f32_cases();
  for (const auto& more : {narrow_cases(), fused_cases()}) {
    out.insert(out.end(), more.begin(), more.end());
  }
  return out;
}

std::int64_t wanted_elements() {
  const char* text = std::getenv("KVCHECK_BOUND_ELEMENTS");
  return text == nullptr ? 300000 : std::max<std::int64_t>(1, std::atoll(text));
}

constexpr std::int64_t kLongRun = 1000000;

struct Observed {
  std::vector<double> lanes;
  double lse = 0;
};

template <class Arithmetic>
Observed observe(const RowData& row, const RowStyle& style, std::uint64_t seed) {
  RowKernel<Arithmetic> kernel(row, style, seed);
  Observed out;
  out.lanes = kernel.run();
  out.lse = kernel.lse();
  return out;
}

Observed observe(const RowData& row, const RowStyle& style, std::uint64_t seed) {
  switch (style.accumulator) {
    case kF16:
      return observe<F16>(row, style, seed);
    case kBf16:
      return observe<Bf16>(row, style, seed);
    case kF64:
      return observe<F64>(row, style, seed);
    case kF32:
      break;
  }
  return observe<F32>(row, style, seed);
}

class Simulation : public testing::TestWithParam<Case> {
 protected:
  /// Mostly short rows, a few of thousands of keys.
  std::size_t draw_count() {
    const std::int64_t class_of = source_.between(1, 100);
    const std::int64_t most = wanted_elements() >= kLongRun ? 8192 : 2048;
    if (class_of <= 50) return static_cast<std::size_t>(source_.between(1, 32));
    if (class_of <= 80) return static_cast<std::size_t>(source_.between(33, 256));
    if (class_of <= 97) return static_cast<std::size_t>(source_.between(257, 1024));
    return static_cast<std::size_t>(source_.between(1025, most));
  }

  /// Judges one row; returns the ratios of its lanes.
  std::vector<double> judge(RowFill fill, std::uint64_t seed) {
    const Case& tested = GetParam();
    const bool fused = tested.style.fused_shift;
    const RowData row =
        source_.row(fill, tested.storage, draw_count(), 16UL << source_.between(0, 3),
                    16UL << source_.between(0, 3), !fused);
    const bool quantised = tested.storage == Storage::int8 || tested.storage == Storage::int4;
    RowBound bound(profile_of(tested.style, tested.output, quantised));
    // Double is off by 2^-29 of the bound of f32 sums, which the bound's own allowance covers.
    const RowTruth truth =
        tested.output == kF64 ? evaluate<long double>(row) : evaluate<double>(row);
    const std::vector<BoundTerms> bounds = bounds_of(bound, row, truth);
    const Observed observed = observe(row, tested.style, seed);
    if (!fused) {
      const auto lse = static_cast<double>(truth.lse);
      const double distance = std::abs(observed.lse - lse);
      const double limit = bound.lse_error(lse, tested.style.accumulator);
      EXPECT_LE(distance, limit) << "lse " << lse << ", " << row.count() << " keys";
      lse_ratio_ = std::max(lse_ratio_, distance / limit);
    }
    return ratios_of(observed.lanes, truth, bounds);
  }

  RowSource source_{20260801};
  double lse_ratio_ = 0;
};

std::string readable(std::string name) {
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(ErrorBound, Simulation, testing::ValuesIn(all_cases()),
                         [](const auto& tested) { return readable(tested.param.name); });

TEST_P(Simulation, StaysWithinTheBoundOnEveryFill) {
  const auto cases = static_cast<std::int64_t>(all_cases().size() * kRowFills.size());
  const auto share = static_cast<std::size_t>(wanted_elements() / cases + 1);
  std::string line;
  std::size_t elements = 0;
  for (const auto& [fill, name] : kRowFills) {
    std::vector<double> ratios;
    for (std::uint64_t seed = 1; ratios.size() < share; ++seed) {
      const std::vector<double> found = judge(fill, seed);
      ASSERT_LE(*std::max_element(found.begin(), found.end()), 1) << name << ", row " << seed;
      ratios.insert(ratios.end(), found.begin(), found.end());
    }
    const auto middle = ratios.begin() + static_cast<std::ptrdiff_t>(ratios.size() / 2);
    std::nth_element(ratios.begin(), middle, ratios.end());
    char cell[64];
    std::snprintf(cell, sizeof cell, " | %.3f/%.4f",
                  *std::max_element(ratios.begin(), ratios.end()), *middle);
    line += cell;
    elements += ratios.size();
  }
  EXPECT_LE(lse_ratio_, 1);
  if (wanted_elements() < kLongRun) return;
  std::printf("BOUND %-34s | %9zu%s | lse %.3f\n", GetParam().name, elements, line.c_str(),
              lse_ratio_);
}

TEST(SimulatedRow, TruthIsThatOfQuadPrecision) {
  using Quad = boost::multiprecision::cpp_bin_float_quad;
  RowSource source(3);
  for (const auto& [fill, name] : kRowFills) {
    const RowData row = source.row(fill, Storage::bf16, 20, 16, 16, true);
    const RowTruth truth = evaluate<long double>(row);
    const RowTruth quad = evaluate<Quad>(row);
    for (std::size_t c = 0; c < row.lanes; ++c) {
      EXPECT_NEAR(static_cast<double>((truth.output[c] - quad.output[c]) * 0x1p60L), 0, 4) << name;
    }
  }
}

}  // namespace
}  // namespace kvcheck::model
