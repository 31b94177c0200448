// Logits and probabilities beside the output, against their definition in extended precision and
// against a target that computes in f32.
#include "model/qk_output.h"

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "model/mask.h"
#include "model/parameters.h"
#include "tests/model/held_scenario.h"

namespace kvcheck::model {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// A scenario with its expected intermediates.
struct Held : HeldScenario {
  using HeldScenario::HeldScenario;

  QkExpected expected(std::size_t step, ElementType output = ElementType::f32) const {
    ArithmeticProfile profile;
    profile.output_type = output;
    const Reading reading;
    Gatherer gatherer(scenario, timeline, fill, profile.accumulator_roundoff, reading);
    return expected_qk(scenario, timeline, profile, gatherer, step);
  }
};

Scenario gqa(QkOutput output) {
  Scenario s;
  s.batch = 2;
  s.query_heads = 4;
  s.kv_heads = 2;
  s.fill.seed = 6;
  s.softcap = 2;
  s.qk_output = output;
  s.mask = {MaskKind::additive, 4, 30, 4};
  s.steps = {Append{{4, 3}, {4, 3}, 0}, Append{{2, 1}, {2, 1}, 0}};
  return s;
}

Scenario attention(QkOutput output) {
  Scenario s = gqa(output);
  s.op = Operator::attention;
  s.opset = 24;
  s.steps = {Append{{4, 4}, {4, 4}, 0}, Append{{2, 2}, {3, 3}, 0}};
  return s;
}

/// Whether causality and window leave `key` in reach of the query at position p.
bool in_reach(const Scenario& s, std::int64_t p, std::int64_t key) {
  if (s.causal && key > p) return false;
  return !s.cache.window_size || key > p - *s.cache.window_size;
}

/// The columns of one row below its entry's length, by the contract, in the arithmetic of Real.
template <class Real>
std::vector<Real> defined_row(const Held& held, std::size_t step, std::int64_t entry,
                              std::int64_t head, std::int64_t query) {
  using std::exp;
  using std::sqrt;
  using std::tanh;
  const Scenario& s = held.scenario;
  const EntryStep& around = held.timeline.steps()[step].entries[static_cast<std::size_t>(entry)];
  const std::int64_t p =
      (s.nonpad_kv_seqlen ? around.length - around.queries : around.past) + query;
  const Real scale = s.scale ? static_cast<Real>(*s.scale)
                             : 1 / sqrt(static_cast<Real>(static_cast<double>(s.head_size)));
  std::vector<Real> out;
  std::vector<std::size_t> seen;
  Real sum = s.head_sink ? exp(static_cast<Real>(sink_logit(s, head))) : Real(0);
  for (std::int64_t j = 0; j < around.length; ++j) {
    Real x = 0;
    for (std::int64_t lane = 0; lane < s.head_size; ++lane) {
      x += static_cast<Real>(held.fill.query(step, entry, head, query, lane)) *
           static_cast<Real>(held.fill.key(
               entry, head / 2, {{j}, held.timeline.generation(step, entry, {j})}, lane));
    }
    x *= scale;
    if (s.qk_output != QkOutput::raw && s.softcap > 0) {
      x = static_cast<Real>(s.softcap) * tanh(x / static_cast<Real>(s.softcap));
    }
    out.push_back(x);
    if (s.qk_output == QkOutput::raw || s.qk_output == QkOutput::softcapped) continue;
    const MaskCell cell = mask_cell(s, held.timeline, step, entry, head, query, {j});
    const bool reach = in_reach(s, p, j);
    out.back() += static_cast<Real>(cell.bias);
    const bool hidden = cell.hides || !reach;
    if (s.qk_output == QkOutput::probabilities) {
      out.back() = hidden ? Real(0) : exp(out.back());
      sum += out.back();
    } else if (hidden) {
      out.back() = s.op == Operator::gqa && !reach ? Real(0) : static_cast<Real>(-kInfinity);
    }
  }
  for (Real& weight : out) {
    if (s.qk_output == QkOutput::probabilities && sum > 0) weight /= sum;
  }
  return out;
}

struct Counted {
  int finite = 0, zero = 0, infinite = 0;
};

/// Compares every row of a step; how many of its elements are what.
Counted check_step(const Held& held, std::size_t step, ElementType type = ElementType::f32) {
  const QkExpected expected = held.expected(step, type);
  const Scenario& s = held.scenario;
  Counted counted;
  for (std::int64_t b = 0; b < s.batch; ++b) {
    const EntryStep& around = held.timeline.steps()[step].entries[static_cast<std::size_t>(b)];
    for (std::int64_t h = 0; h < s.query_heads; ++h) {
      for (std::int64_t i = 0; i < around.queries; ++i) {
        const auto exact = defined_row<long double>(held, step, b, h, i);
        const auto target = defined_row<float>(held, step, b, h, i);
        for (std::size_t j = 0; j < exact.size(); ++j) {
          const auto at = static_cast<std::size_t>(
                              ((b * s.query_heads + h) * expected.queries + i) * expected.columns) +
                          j;
          const auto truth = static_cast<double>(exact[j]);
          if (std::isinf(truth)) {
            EXPECT_EQ(expected.values[at], truth);
            EXPECT_EQ(expected.bound[at], 0);
            ++counted.infinite;
            continue;
          }
          EXPECT_NEAR(expected.values[at], truth, 1e-13) << b << h << i << j;
          if (truth == 0) {
            EXPECT_EQ(expected.bound[at], 0);
          }
          const double stored = round_to(type, static_cast<double>(target[j]));
          EXPECT_LE(std::abs(stored - truth), expected.bound[at]) << b << h << i << j;
          EXPECT_LT(expected.bound[at], 0x1p-4 * (type == ElementType::f32 ? 0x1p-8 : 1));
          ++(truth == 0 ? counted.zero : counted.finite);
        }
      }
    }
  }
  return counted;
}

TEST(QkOutputOfAttention, RawAndSoftcappedShowEveryKey) {
  for (const QkOutput output : {QkOutput::raw, QkOutput::softcapped}) {
    const Held held(attention(output));
    for (const std::size_t step : {0u, 1u}) {
      const Counted counted = check_step(held, step);
      EXPECT_EQ(counted.infinite, 0);
      EXPECT_EQ(counted.zero, 0) << "no key is hidden here";
    }
  }
}

TEST(QkOutputOfAttention, BiasedIsMinusInfinityWhereAKeyIsHidden) {
  for (const MaskKind kind : {MaskKind::additive, MaskKind::boolean, MaskKind::none}) {
    Scenario s = attention(QkOutput::biased);
    s.mask = {kind, 4, 30, 4};
    if (kind == MaskKind::none) s.mask = {};
    const Held held(s);
    const Counted counted = check_step(held, 0);
    EXPECT_EQ(counted.zero, 0);
    EXPECT_GT(counted.finite, 0);
    // Six of sixteen cells are later than their query.
    EXPECT_GE(counted.infinite, 2 * 4 * 6);
    EXPECT_EQ(counted.infinite == 2 * 4 * 6, kind == MaskKind::none);
    check_step(held, 1);
  }
}

TEST(QkOutputOfAttention, ProbabilitiesAreZeroWhereHiddenAndInADeadRow) {
  Scenario s = attention(QkOutput::probabilities);
  s.mask = {MaskKind::boolean, 4, 20, 1, true};
  const Held held(s);
  const Counted counted = check_step(held, 0);
  EXPECT_EQ(counted.infinite, 0);
  EXPECT_GT(counted.zero, 2 * 4 * 6);
  bool dead = false;
  const QkExpected expected = held.expected(0);
  for (std::size_t row = 0; row < expected.values.size(); row += 4) {
    double sum = 0;
    for (std::size_t j = 0; j < 4; ++j) sum += expected.values[row + j];
    EXPECT_TRUE(sum == 0 || std::abs(sum - 1) < 1e-12);
    dead = dead || sum == 0;
  }
  EXPECT_TRUE(dead);
}

TEST(QkOutputOfAttention, EveryBoundIsANumberWhereNothingIsKnownOfAWeight) {
  Scenario s = attention(QkOutput::probabilities);
  s.fill.kind = FillKind::extreme;
  s.softcap = 0;
  s.element_type = ElementType::f16;
  ArithmeticProfile coarse;
  coarse.accumulator_roundoff = coarse.logit_roundoff = 0x1p-11;
  coarse.output_type = ElementType::f16;
  int unknown = 0;
  for (s.fill.seed = 0; s.fill.seed < 20; ++s.fill.seed) {
    const Held held(s);
    const Reading reading;
    Gatherer gatherer(held.scenario, held.timeline, held.fill, 0x1p-11, reading);
    const QkExpected expected = expected_qk(held.scenario, held.timeline, coarse, gatherer, 0);
    for (std::size_t i = 0; i < expected.bound.size(); ++i) {
      EXPECT_FALSE(std::isnan(expected.bound[i]));
      unknown += expected.values[i] == 0 && expected.bound[i] >= 1 ? 1 : 0;
    }
  }
  EXPECT_GT(unknown, 0);
}

TEST(QkOutputOfAttention, HasAColumnForEachRowOfAnExternalBuffer) {
  Scenario s = attention(QkOutput::biased);
  s.mask = {};
  s.nonpad_kv_seqlen = true;
  s.cache.capacity = 8;
  s.steps = {Append{{3, 5}, {2, 2}, 0}};
  const Held held(s);
  check_step(held, 0);
  const QkExpected expected = held.expected(0);
  EXPECT_EQ(expected.columns, 8);
  EXPECT_EQ(expected.queries, 2);
  ASSERT_EQ(expected.values.size(), 2u * 4 * 2 * 8);
  EXPECT_EQ(expected.bound[2], 0) << "the newest of three keys is hidden from the first query";
  EXPECT_EQ(expected.bound[3], kInfinity) << "a column that no token fills";
}

TEST(QkOutputOfGqa, BiasedIsZeroOutOfReach) {
  Scenario s = gqa(QkOutput::biased);
  s.mask = {};
  s.cache.window_size = 2;
  const Held held(s);
  for (const std::size_t step : {0u, 1u}) {
    const Counted counted = check_step(held, step);
    EXPECT_EQ(counted.infinite, 0);
    EXPECT_GT(counted.zero, 0);
    EXPECT_GT(counted.finite, 0);
  }
}

TEST(QkOutputOfGqa, BiasedIsMinusInfinityWhereTheBiasAloneHides) {
  const Held held(gqa(QkOutput::biased));
  const Counted counted = check_step(held, 0);
  EXPECT_GT(counted.infinite, 0);
  EXPECT_EQ(counted.zero, 4 * (6 + 3)) << "later keys of four and three tokens, whatever the bias";
  check_step(held, 1);
}

TEST(QkOutputOfGqa, ProbabilitiesLeaveOutTheSink) {
  Scenario s = gqa(QkOutput::probabilities);
  s.head_sink = true;
  const Held held(s);
  EXPECT_EQ(check_step(held, 0).infinite, 0);
  check_step(held, 1);
  const QkExpected expected = held.expected(1);
  double sum = 0;
  for (std::int64_t j = 0; j < expected.columns; ++j) {
    sum += expected.values[static_cast<std::size_t>(j)];
  }
  EXPECT_LT(sum, 0.999);
}

TEST(QkOutput, LeavesWhatShorterEntriesLackOpen) {
  const Held held(gqa(QkOutput::biased));
  const QkExpected expected = held.expected(0);
  ASSERT_EQ(expected.queries, 4);
  ASSERT_EQ(expected.columns, 4);
  const std::size_t last_row = 4 * 4 * 4 + 3 * 4;  // Entry 1, head 0, its missing fourth query.
  const std::size_t last_column = 4 * 4 * 4 + 3;
  for (std::size_t j = 0; j < 4; ++j) {
    EXPECT_EQ(expected.values[last_row + j], 0);
    EXPECT_EQ(expected.bound[last_row + j], kInfinity);
  }
  EXPECT_EQ(expected.bound[last_column], kInfinity);
}

TEST(QkOutput, BoundCoversAStoreInSixteenBits) {
  for (const QkOutput output : {QkOutput::biased, QkOutput::probabilities}) {
    Scenario s = gqa(output);
    s.element_type = ElementType::f16;
    check_step(Held(s), 1, ElementType::f16);
    s.element_type = ElementType::bf16;
    check_step(Held(s), 1, ElementType::bf16);
  }
}

TEST(QkOutput, OfAWindowWithoutKeysIsZero) {
  Scenario s = gqa(QkOutput::probabilities);
  s.mask = {};
  s.cache.window_size = 0;
  const Counted counted = check_step(Held(s), 0);
  EXPECT_EQ(counted.finite, 0);
}

}  // namespace
}  // namespace kvcheck::model
