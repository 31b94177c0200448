// The truth of 113 bits against 237 bits and against rationals: how exact it is itself.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <variant>
#include <vector>

#include <boost/multiprecision/cpp_bin_float.hpp>
#include <boost/multiprecision/cpp_int.hpp>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "model/oracle.h"
#include "model/scenario_json.h"
#include "tests/model/definition.h"
#include "tests/model/random_scenario.h"

namespace kvcheck::model {
namespace {

using Oct = boost::multiprecision::cpp_bin_float_oct;
using Rational = boost::multiprecision::cpp_rational;

/// What the printed truth may lack of its 30 digits, relative to the largest value of the lane.
constexpr double kDigits = 1e-29;

struct Largest {
  double difference = 0;      // Relative to the largest value of the lane.
  double share_of_bound = 0;  // Of the f32 bound.
  int outputs = 0;
};

/// Calls `check(oracle, step, entry, query, head, lane)` on one output of every asking step.
template <class Check>
void on_outputs(std::uint64_t seed, int scenarios, FillKind fill, Check check) {
  ScenarioSource source(seed, true);
  for (int i = 0; i < scenarios; ++i) {
    Scenario s = source.valid();
    s.fill.kind = fill;
    s = normalise(s);
    ArithmeticProfile profile;
    profile.output_type = s.element_type;
    Oracle oracle(s, profile);
    for (std::size_t step = 0; step < s.steps.size(); ++step) {
      const TimelineStep& state = oracle.timeline().steps()[step];
      if (!state.defined || !std::holds_alternative<Append>(s.steps[step])) continue;
      for (std::int64_t entry = 0; entry < s.batch; ++entry) {
        const std::int64_t queries = state.entries[static_cast<std::size_t>(entry)].queries;
        if (queries == 0) continue;
        check(oracle, step, entry, source.between(0, queries - 1),
              source.between(0, s.query_heads - 1), source.between(0, s.value_head_size - 1));
      }
    }
  }
}

double largest_value(const Oracle& oracle, Operands& operands, std::size_t step,
                     std::int64_t entry) {
  double largest = 0;
  const auto& around = oracle.timeline().steps()[step].entries[static_cast<std::size_t>(entry)];
  std::vector<Position> all;
  for (std::int64_t j = 0; j < around.length; ++j) all.push_back({j});
  const auto written = oracle.timeline().written(step, entry, all);
  for (std::size_t j = 0; j < all.size(); ++j) {
    const auto& held = operands.stored({entry, {all[j], written[j].generation}, written[j].step});
    for (const double v : held.values) largest = std::max(largest, std::abs(v));
  }
  return largest;
}

TEST(Truth, Of113BitsAgreesWith237Bits) {
  Largest largest;
  for (const FillKind fill : {FillKind::random, FillKind::needles}) {
    on_outputs(
        11, 200, fill,
        [&](Oracle& oracle, std::size_t step, std::int64_t entry, std::int64_t query,
            std::int64_t head, std::int64_t lane) {
          const Reading right;
          Operands operands(oracle.scenario(), oracle.timeline(), oracle.fill(), 0x1p-24, right);
          const Oct exact = by_definition<Oct>(oracle, operands, step, entry, query, head, lane);
          const Oct told(oracle.exact_output(step, entry, query, head, lane));
          const double size = std::max(1e-30, largest_value(oracle, operands, step, entry));
          const auto difference = static_cast<double>(Oct(abs(Oct(told - exact))));
          EXPECT_LT(difference, kDigits * size) << canonical_text(oracle.scenario());
          largest.difference = std::max(largest.difference, difference / size);
          const auto& expected = oracle.expected(step);
          const auto& s = oracle.scenario();
          const double bound = expected.bound[static_cast<std::size_t>(
              ((entry * expected.queries + query) * s.query_heads + head) * s.value_head_size +
              lane)];
          if (bound > 0) {
            largest.share_of_bound = std::max(largest.share_of_bound, difference / bound);
          }
          ++largest.outputs;
        });
  }
  RecordProperty("largest_relative_difference", fmt::format("{}", largest.difference));
  std::printf(
      "113 against 237 bits: %d outputs, largest difference %.2g of the values, %.2g of "
      "the bound\n",
      largest.outputs, largest.difference, largest.share_of_bound);
  EXPECT_GT(largest.outputs, 500);
  EXPECT_GT(largest.difference, 0);  // 30 digits cannot be exact everywhere.
  EXPECT_LT(largest.difference, kDigits);
  EXPECT_LT(largest.share_of_bound, 1e-9);
}

TEST(Truth, OfEqualLogitsIsTheRationalMean) {
  double largest = 0;
  int outputs = 0;
  for (const FillKind fill : {FillKind::position_code, FillKind::position_block}) {
    on_outputs(
        12, 200, fill,
        [&](Oracle& oracle, std::size_t step, std::int64_t entry, std::int64_t query,
            std::int64_t head, std::int64_t lane) {
          const Scenario& s = oracle.scenario();
          if (s.head_sink) return;  // Its weight is no rational.
          const Reading right;
          Operands operands(s, oracle.timeline(), oracle.fill(), 0x1p-24, right);
          Rational sum = 0;
          const auto seen = visible_positions(s, oracle.timeline(), step, entry, head, query);
          const auto written = oracle.timeline().written(step, entry, seen);
          const std::int64_t kv = head * s.kv_heads / s.query_heads;
          for (std::size_t j = 0; j < seen.size(); ++j) {
            const auto& held =
                operands.stored({entry, {seen[j], written[j].generation}, written[j].step});
            sum += Rational(held.values[static_cast<std::size_t>(kv * s.value_head_size + lane)]);
          }
          const std::int64_t count =
              static_cast<std::int64_t>(seen.size()) + (s.smooth_softmax ? 1 : 0);
          const Rational mean = seen.empty() ? Rational(0) : Rational(sum / count);
          const Oct told(oracle.exact_output(step, entry, query, head, lane));
          const Oct exact = Oct(numerator(mean)) / Oct(denominator(mean));
          largest = std::max(largest, static_cast<double>(Oct(abs(Oct(told - exact)))));
          ++outputs;
        });
  }
  std::printf("113 bits against rationals: %d outputs, largest difference %.2g\n", outputs,
              largest);
  EXPECT_GT(outputs, 500);
  EXPECT_LT(largest, kDigits);
}

}  // namespace
}  // namespace kvcheck::model
