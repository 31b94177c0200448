// Facts about the oracle: truth by hand, head maps, masks, outputs that are not finite.
#include "model/oracle.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "model/mask.h"
#include "model/visibility.h"
#include "tests/model/oracle_case.h"

namespace kvcheck::model {
namespace {

TEST(Oracle, OneKeyGivesItsValueBack) {
  Oracle oracle(gqa_of({Append{{1}, {1}, 0}}), {});
  const Expected& expected = oracle.expected(0);
  ASSERT_EQ(expected.queries, 1);
  ASSERT_EQ(expected.output.size(), 4u * 8);
  for (std::int64_t head = 0; head < 4; ++head) {
    for (std::int64_t lane = 0; lane < 8; ++lane) {
      EXPECT_EQ(expected.output[output_index(oracle.scenario(), expected, 0, 0, head, lane)],
                oracle.fill().value(0, head / 2, {{0}, 0}, lane));
    }
  }
}

TEST(Oracle, EqualLogitsGiveTheMeanOfTheVisibleValues) {
  Scenario s = gqa_of({Append{{7}, {7}, 0}}, FillKind::position_code);
  s.cache.window_size = 3;
  Oracle oracle(s, {});
  const Expected& expected = oracle.expected(0);
  for (std::int64_t query = 0; query < 7; ++query) {
    const std::int64_t seen = std::min<std::int64_t>(3, query + 1);
    for (std::int64_t head = 0; head < 4; ++head) {
      for (std::int64_t lane = 0; lane < 8; ++lane) {
        double weight = 0;
        for (std::int64_t key = query - seen + 1; key <= query; ++key) {
          if (position_lane(s, 0, head / 2, {key}) == lane) {
            weight += 1.0 / static_cast<double>(seen);
          }
        }
        EXPECT_NEAR(expected.output[output_index(s, expected, 0, query, head, lane)], weight,
                    1e-15);
      }
    }
  }
}

TEST(Oracle, TwoKeysAreWeighedByTheLogisticOfTheirLogitDifference) {
  Scenario s = gqa_of({Append{{2}, {2}, 0}});
  for (const auto scale : {std::optional<double>(), std::optional<double>(0.75)}) {
    s.scale = scale;
    Oracle oracle(s, {});
    const Fill& fill = oracle.fill();
    for (std::int64_t head = 0; head < 4; ++head) {
      const std::int64_t kv = head / 2;
      double difference = 0;
      for (std::int64_t c = 0; c < 8; ++c) {
        difference += fill.query(0, 0, head, 1, c) *
                      (fill.key(0, kv, {{1}, 0}, c) - fill.key(0, kv, {{0}, 0}, c));
      }
      const double weight = 1 / (1 + std::exp(-difference * scale.value_or(1 / std::sqrt(8.0))));
      for (std::int64_t lane = 0; lane < 8; ++lane) {
        const double output = (1 - weight) * fill.value(0, kv, {{0}, 0}, lane) +
                              weight * fill.value(0, kv, {{1}, 0}, lane);
        EXPECT_NEAR(
            oracle.expected(0).output[output_index(s, oracle.expected(0), 0, 1, head, lane)],
            output, 1e-14);
      }
    }
  }
}

/// One query behind a past of 2 that appends 2 keys: it stands at position 2 and the last key is
/// ahead of it.
Scenario query_before_newest_key(int opset) {
  Scenario s;
  s.op = Operator::attention;
  s.opset = opset;
  s.head_size = s.value_head_size = 4;
  s.fill = {FillKind::position_code, 1, 0};
  s.steps = {Past{{2}}, Append{{2}, {1}, 0}};
  return s;
}

TEST(Oracle, CausalQueryWithPastDoesNotSeeTheKeyAfterIt) {
  for (const int opset : {23, 24}) {
    const Scenario s = query_before_newest_key(opset);
    ASSERT_TRUE(validate(s).empty());
    Oracle oracle(s, {});
    for (std::int64_t key = 0; key < 4; ++key) {
      const std::int64_t lane = position_lane(s, 0, 0, {key});
      EXPECT_EQ(oracle.exact_output(1, 0, 0, 0, lane),
                key < 3 ? "0.333333333333333333333333333333" : "0");
      EXPECT_LE(oracle.bound_ratio(1, 0, 0, 0, lane, key < 3 ? 1.0f / 3.0f : 0.0), 1);
      EXPECT_GT(oracle.bound_ratio(1, 0, 0, 0, lane, 0.25), 1);
    }
  }
}

TEST(Oracle, RowsThatSeeNothingAreExactlyZero) {
  Scenario s = query_before_newest_key(24);
  s.nonpad_kv_seqlen = true;
  s.cache.capacity = 8;
  s.fill = {FillKind::random, 1, 0};
  s.steps = {Append{{1}, {3}, 0}};
  ASSERT_TRUE(validate(s).empty());
  Oracle oracle(s, {});
  const Expected& expected = oracle.expected(0);
  for (std::int64_t query = 0; query < 3; ++query) {
    for (std::int64_t lane = 0; lane < 4; ++lane) {
      const std::size_t i = output_index(s, expected, 0, query, 0, lane);
      if (query == 2) {
        EXPECT_NE(expected.output[i], 0);
        continue;
      }
      EXPECT_EQ(expected.output[i], 0);
      EXPECT_EQ(expected.bound[i], 0);
      EXPECT_EQ(oracle.bound_ratio(0, 0, query, 0, lane, 0.0), 0);
      EXPECT_EQ(oracle.bound_ratio(0, 0, query, 0, lane, -0.0), 0);
      EXPECT_EQ(oracle.bound_ratio(0, 0, query, 0, lane, 5e-324),
                std::numeric_limits<double>::infinity());
      EXPECT_EQ(oracle.exact_output(0, 0, query, 0, lane), "0");
    }
  }
}

TEST(Oracle, ShorterEntriesLeaveTheirTailAtZero) {
  Scenario s = gqa_of({Append{{3, 1}, {3, 1}, 0}});
  s.batch = 2;
  Oracle oracle(s, {});
  const Expected& expected = oracle.expected(0);
  EXPECT_EQ(expected.queries, 3);
  ASSERT_EQ(expected.output.size(), 2u * 3 * 4 * 8);
  EXPECT_NE(expected.output[output_index(s, expected, 1, 0, 0, 0)], 0);
  for (std::int64_t query = 1; query < 3; ++query) {
    EXPECT_EQ(expected.output[output_index(s, expected, 1, query, 3, 7)], 0);
    EXPECT_EQ(expected.bound[output_index(s, expected, 1, query, 3, 7)], 0);
  }
}

TEST(Oracle, RolledBackTokensHaveNoInfluence) {
  const Scenario drafted =
      gqa_of({Append{{4}, {4}, 0}, Append{{3}, {3}, 5}, Rollback{{3}}, Append{{2}, {2}, 1}});
  const Scenario plain = gqa_of({Append{{4}, {4}, 0}, Append{{2}, {2}, 1}});
  Oracle first(drafted, {});
  Oracle second(plain, {});
  EXPECT_EQ(first.expected(3).output, second.expected(1).output);
  EXPECT_NE(first.expected(1).output[0], first.expected(3).output[0]);
}

TEST(Oracle, SplitStepsGiveTheSameOutputs) {
  for (const FillKind fill : {FillKind::random, FillKind::needles}) {
    Oracle whole(gqa_of({Append{{5}, {5}, 0}}, fill), {});
    Oracle split(gqa_of({Append{{2}, {2}, 0}, Append{{3}, {3}, 0}}, fill), {});
    std::vector<double> joined = split.expected(0).output;
    const auto& rest = split.expected(1).output;
    joined.insert(joined.end(), rest.begin(), rest.end());
    EXPECT_EQ(whole.expected(0).output, joined);
  }
}

TEST(Oracle, WhatIsNotFiniteIsInfinitelyOverTheBound) {
  Oracle oracle(gqa_of({Append{{3}, {3}, 0}}), {});
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double observed : {kInfinity, -kInfinity, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_EQ(oracle.bound_ratio(0, 0, 1, 2, 3, observed), kInfinity);
  }
}

TEST(Oracle, AnInfiniteBoundJudgesNothingFinite) {
  ArithmeticProfile hopeless;
  hopeless.accumulator_roundoff = 0.5;
  Oracle oracle(gqa_of({Append{{3}, {3}, 0}}), hopeless);
  EXPECT_EQ(oracle.bound_ratio(0, 0, 2, 0, 0, 1e30), 0);
  EXPECT_EQ(oracle.bound_ratio(0, 0, 2, 0, 0, std::nan("")),
            std::numeric_limits<double>::infinity());
}

TEST(Oracle, AdditiveMaskBiasEntersTheLogits) {
  Scenario s = query_before_newest_key(23);
  s.fill = {FillKind::random, 2, 0};
  s.scale = 1e-12;  // Leaves the bias alone in charge.
  s.mask = {MaskKind::additive, 2, 0, 4, false};
  Oracle oracle(s, {});
  double sum = 0;
  double output = 0;
  for (std::int64_t key = 0; key < 3; ++key) {
    const double weight = std::exp(mask_bias(s, 0, 0, {2}, {key}));
    sum += weight;
    output += weight * oracle.fill().value(0, 0, {{key}, 0}, 1);
  }
  EXPECT_NEAR(oracle.expected(1).output[1], output / sum, 1e-10);
}

TEST(Oracle, HeadsUnderARank3MaskSeeTheirOwnKeys) {
  Scenario s = query_before_newest_key(24);
  s.query_heads = 4;
  s.causal = false;
  s.mask = {MaskKind::boolean, 3, 50, 4, false};
  s.steps = {Past{{6}}, Append{{1}, {2}, 0}};
  s.value_head_size = 8;
  Oracle oracle(s, {});
  const Expected& expected = oracle.expected(1);
  for (std::int64_t query = 0; query < 2; ++query) {
    for (std::int64_t head = 0; head < 4; ++head) {
      const auto seen = visible_positions(s, oracle.timeline(), 1, 0, head, query);
      for (std::int64_t key = 0; key < 7; ++key) {
        const bool visible = std::count(seen.begin(), seen.end(), Position{key}) > 0;
        const double output =
            expected
                .output[output_index(s, expected, 0, query, head, position_lane(s, 0, 0, {key}))];
        EXPECT_NEAR(output, visible ? 1.0 / static_cast<double>(seen.size()) : 0.0, 1e-15);
      }
    }
  }
}

TEST(Oracle, APastNearTheLargestLengthCostsNoMoreThanItsWindow) {
  Scenario s = gqa_of({Past{{kMaxLength - 2}}, Append{{2}, {2}, 0}}, FillKind::needles);
  s.cache = {LayoutKind::block, 6, 4};
  ASSERT_TRUE(validate(s).empty());
  Oracle oracle(s, {});
  EXPECT_TRUE(std::isfinite(oracle.expected(1).output[0]));
}

TEST(Oracle, OutlivesTheScenarioItWasGiven) {
  auto scenario = std::make_unique<Scenario>(gqa_of({Append{{3}, {3}, 0}}, FillKind::needles));
  const Scenario copy = *scenario;
  Oracle oracle(*scenario, {});
  scenario.reset();
  Oracle other(copy, {});
  EXPECT_EQ(oracle.expected(0).output, other.expected(0).output);
  EXPECT_FALSE(std::is_copy_constructible_v<Oracle>);
  EXPECT_FALSE(std::is_move_constructible_v<Oracle>);
}

}  // namespace
}  // namespace kvcheck::model
