// Simulated kernels on either side of the bound of whole scenarios.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "model/scenario_json.h"
#include "tests/model/random_scenario.h"
#include "tests/model/simulated_kernel.h"

namespace kvcheck::model {
namespace {

struct Style {
  const char* name;
  ElementType storage;
  KernelStyle style;
};

std::vector<Style> healthy_styles() {
  const auto f32 = ElementType::f32;
  const auto f16 = ElementType::f16;
  const auto bf16 = ElementType::bf16;
  const auto f64 = ElementType::f64;
  return {
      {"f32 sequential", f32, {}},
      {"f32 backwards", f32, {.backwards = true}},
      {"f32 weights normalised first", f32, {.normalise_first = true}},
      {"f32 scale on operands", f32, {.scale_on_operands = true}},
      {"f32 online, blocks of 4", f32, {.block = 4}},
      {"f32 online, every key rescales", f32, {.block = 1, .backwards = true}},
      {"f32 online, base two, 3 splits", f32, {.block = 3, .splits = 3, .base_two = true}},
      {"f16 storage, f32 sums", f16, {}},
      {"f16 storage, f16 weights, online", f16, {.weights = f16, .block = 4}},
      {"f16 storage, f16 weights normalised", f16, {.weights = f16, .normalise_first = true}},
      {"f16 throughout", f16, {.accumulator = f16, .weights = f16}},
      {"bf16 storage, f32 sums", bf16, {.block = 8}},
      {"bf16 storage, bf16 weights, online", bf16, {.weights = bf16, .block = 4, .splits = 2}},
      {"bf16 throughout", bf16, {.accumulator = bf16, .weights = bf16, .block = 2}},
      {"f64 throughout", f64, {.accumulator = f64, .weights = f64, .block = 4}},
  };
}

/// Random valid scenarios with queries, of the given fill and type.
Scenario draw(ScenarioSource& source, FillKind fill, ElementType type) {
  Scenario s = source.valid();
  s.fill.kind = fill;
  s.element_type = type;
  if (!is_position_fill(fill)) s.fill.index = 0;
  if (source.chance(40)) {  // Wider heads and longer steps than the source draws.
    s.head_size *= 4;
    s.value_head_size = s.op == Operator::gqa ? s.head_size : s.value_head_size;
  }
  return s;
}

class HealthyKernels : public testing::TestWithParam<Style> {};

INSTANTIATE_TEST_SUITE_P(ErrorBound, HealthyKernels, testing::ValuesIn(healthy_styles()),
                         [](const auto& tested) {
                           std::string name = tested.param.name;
                           for (char& c : name) c = std::isalnum(c) != 0 ? c : '_';
                           return name;
                         });

TEST_P(HealthyKernels, StayWithinTheBoundOnEveryFill) {
  ScenarioSource source(2026);
  for (const FillKind fill : {FillKind::random, FillKind::needles, FillKind::position_code,
                              FillKind::position_block, FillKind::extreme, FillKind::ties,
                              FillKind::cancelling, FillKind::selection, FillKind::integers}) {
    // Sums of values near the largest f16 overflow there: the bound assumes that none does.
    if (fill == FillKind::extreme && GetParam().style.accumulator == ElementType::f16) continue;
    Ratios worst;
    for (int i = 0; i < 42; ++i) {
      Scenario scenario = draw(source, fill, GetParam().storage);
      if (i < 2) {  // Many keys in one row.
        scenario.steps = {Append{
            std::vector<std::int64_t>(static_cast<std::size_t>(scenario.batch), 150 + 170 * i),
            {},
            0}};
        std::get<Append>(scenario.steps[0])
            .queries.assign(static_cast<std::size_t>(scenario.batch), 3);
        scenario.op = Operator::attention;
        scenario.opset = 24;
        scenario.causal = scenario.share_buffers = true;
        scenario.nonpad_kv_seqlen = true;
        scenario.cache = {LayoutKind::full, 400, std::nullopt, 0, 0, {}};
      }
      ASSERT_TRUE(validate(scenario).empty()) << canonical_text(scenario);
      const Ratios ratios = judge(scenario, GetParam().style, static_cast<std::uint64_t>(i));
      ASSERT_LE(ratios.largest, 1) << canonical_text(scenario);
      worst.largest = std::max(worst.largest, ratios.largest);
      worst.elements += ratios.elements;
    }
    EXPECT_GT(worst.elements, 1000);
    std::printf("%-38s %-14s %7lld elements, largest ratio %.3f\n", GetParam().name,
                std::string(to_string(fill)).c_str(), static_cast<long long>(worst.elements),
                worst.largest);
  }
}

/// One decode step behind a window; plain enough that a planted fault is all that is wrong.
Scenario decode(FillKind fill, ElementType type, std::int64_t past) {
  Scenario s;
  s.query_heads = 2;
  s.kv_heads = 1;
  s.head_size = s.value_head_size = 16;
  s.element_type = type;
  s.cache.window_size = past;
  s.fill = {fill, 3, 0};
  s.steps = {Past{{past}}, Append{{1}, {1}, 0}};
  return s;
}

TEST(ErrorBound, OneWrongKeyIsOverTheBound) {
  for (const ElementType type : {ElementType::f32, ElementType::f16, ElementType::bf16}) {
    for (const Fault fault :
         {Fault::extra_newer, Fault::extra_older, Fault::missing_newest, Fault::missing_oldest}) {
      for (const FillKind fill : {FillKind::needles, FillKind::position_code}) {
        for (const std::int64_t past : {2, 5, 17, 60}) {
          KernelStyle style;
          style.fault = fault;
          const Ratios ratios = judge(decode(fill, type, past), style);
          EXPECT_GT(ratios.largest, 1) << to_string(fill) << ' ' << to_string(type) << " fault "
                                       << static_cast<int>(fault) << " past " << past;
        }
      }
    }
  }
}

TEST(ErrorBound, AWrongScaleIsOverTheBoundOnNeedles) {
  for (const ElementType type : {ElementType::f32, ElementType::f16, ElementType::bf16}) {
    KernelStyle style;
    style.fault = Fault::wrong_scale;
    EXPECT_GT(judge(decode(FillKind::needles, type, 20), style).largest, 1) << to_string(type);
    EXPECT_LE(judge(decode(FillKind::position_code, type, 20), style).largest, 1);
  }
}

TEST(ErrorBound, APaddingLaneInTheSumIsOverTheBoundOnPositionCode) {
  for (const ElementType type : {ElementType::f32, ElementType::f16, ElementType::bf16}) {
    KernelStyle style;
    style.fault = Fault::padded_sum;
    EXPECT_GT(judge(decode(FillKind::position_code, type, 40), style).largest, 1)
        << to_string(type);
  }
}

TEST(ErrorBound, SumsInHalfPrecisionAreOverTheBoundOfF32Sums) {
  KernelStyle narrow;
  narrow.accumulator = ElementType::f16;
  for (const FillKind fill : {FillKind::random, FillKind::needles}) {
    const Scenario scenario = decode(fill, ElementType::f16, 60);
    Oracle oracle(scenario, KernelStyle{}.profile(ElementType::f16));
    SimulatedKernel kernel(oracle, narrow);
    double largest = 0;
    for (std::int64_t head = 0; head < 2; ++head) {
      const std::vector<double> row = kernel.row(1, 0, 0, head);
      for (std::int64_t c = 0; c < 16; ++c) {
        largest = std::max(largest,
                           oracle.bound_ratio(1, 0, 0, head, c, row[static_cast<std::size_t>(c)]));
      }
    }
    EXPECT_GT(largest, 1) << to_string(fill);
  }
}

}  // namespace
}  // namespace kvcheck::model
