// Facts about the oracle: truth by hand, head maps, masks, verdicts of both tiers.
#include "model/oracle.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include <boost/multiprecision/cpp_bin_float.hpp>
#include <gtest/gtest.h>

#include "model/mask.h"
#include "model/scenario_json.h"
#include "model/visibility.h"
#include "tests/model/definition.h"
#include "tests/model/random_scenario.h"

namespace kvcheck::model {
namespace {

using Quad = boost::multiprecision::cpp_bin_float_quad;

Scenario gqa(std::vector<Step> steps, FillKind fill = FillKind::random) {
  Scenario s;
  s.query_heads = 4;
  s.kv_heads = 2;
  s.head_size = s.value_head_size = 8;
  s.fill = {fill, 9, 0};
  s.steps = std::move(steps);
  return s;
}

std::size_t at(const Scenario& s, const Expected& e, std::int64_t entry, std::int64_t query,
               std::int64_t head, std::int64_t lane) {
  return static_cast<std::size_t>(
      ((entry * e.queries + query) * s.query_heads + head) * s.value_head_size + lane);
}

TEST(Oracle, OneKeyGivesItsValueBack) {
  Oracle oracle(gqa({Append{{1}, {1}, 0}}), {});
  const Expected& expected = oracle.expected(0);
  ASSERT_EQ(expected.queries, 1);
  ASSERT_EQ(expected.output.size(), 4u * 8);
  for (std::int64_t head = 0; head < 4; ++head) {
    for (std::int64_t lane = 0; lane < 8; ++lane) {
      EXPECT_EQ(expected.output[at(oracle.scenario(), expected, 0, 0, head, lane)],
                oracle.fill().value(0, head / 2, {{0}, 0}, lane));
    }
  }
}

TEST(Oracle, EqualLogitsGiveTheMeanOfTheVisibleValues) {
  Scenario s = gqa({Append{{7}, {7}, 0}}, FillKind::position_code);
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
        EXPECT_NEAR(expected.output[at(s, expected, 0, query, head, lane)], weight, 1e-15);
      }
    }
  }
}

TEST(Oracle, TwoKeysAreWeighedByTheLogisticOfTheirLogitDifference) {
  Scenario s = gqa({Append{{2}, {2}, 0}});
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
        EXPECT_NEAR(oracle.expected(0).output[at(s, oracle.expected(0), 0, 1, head, lane)], output,
                    1e-14);
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
      const std::size_t i = at(s, expected, 0, query, 0, lane);
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
  Scenario s = gqa({Append{{3, 1}, {3, 1}, 0}});
  s.batch = 2;
  Oracle oracle(s, {});
  const Expected& expected = oracle.expected(0);
  EXPECT_EQ(expected.queries, 3);
  ASSERT_EQ(expected.output.size(), 2u * 3 * 4 * 8);
  EXPECT_NE(expected.output[at(s, expected, 1, 0, 0, 0)], 0);
  for (std::int64_t query = 1; query < 3; ++query) {
    EXPECT_EQ(expected.output[at(s, expected, 1, query, 3, 7)], 0);
    EXPECT_EQ(expected.bound[at(s, expected, 1, query, 3, 7)], 0);
  }
}

TEST(Oracle, RolledBackTokensHaveNoInfluence) {
  const Scenario drafted =
      gqa({Append{{4}, {4}, 0}, Append{{3}, {3}, 5}, Rollback{{3}}, Append{{2}, {2}, 1}});
  const Scenario plain = gqa({Append{{4}, {4}, 0}, Append{{2}, {2}, 1}});
  Oracle first(drafted, {});
  Oracle second(plain, {});
  EXPECT_EQ(first.expected(3).output, second.expected(1).output);
  EXPECT_NE(first.expected(1).output[0], first.expected(3).output[0]);
}

TEST(Oracle, SplitStepsGiveTheSameOutputs) {
  for (const FillKind fill : {FillKind::random, FillKind::needles}) {
    Oracle whole(gqa({Append{{5}, {5}, 0}}, fill), {});
    Oracle split(gqa({Append{{2}, {2}, 0}, Append{{3}, {3}, 0}}, fill), {});
    std::vector<double> joined = split.expected(0).output;
    const auto& rest = split.expected(1).output;
    joined.insert(joined.end(), rest.begin(), rest.end());
    EXPECT_EQ(whole.expected(0).output, joined);
  }
}

Quad truth_of(const Oracle& oracle, std::size_t step, std::int64_t entry, std::int64_t query,
              std::int64_t head, std::int64_t lane) {
  const Reading right;
  Operands operands(oracle.scenario(), oracle.timeline(), oracle.fill(), 0x1p-24, right);
  return by_definition<Quad>(oracle, operands, step, entry, query, head, lane);
}

/// Calls `check(oracle, step, entry, query, head, lane)` on outputs of random scenarios.
template <class Check>
void on_random_outputs(ElementType type, int scenarios, Check check) {
  ScenarioSource source(77, true);
  for (int i = 0; i < scenarios; ++i) {
    Scenario s = source.valid();
    s.element_type = type;
    ArithmeticProfile profile;
    if (type == ElementType::f64) profile = double_profile();
    profile.output_type = type;
    Oracle oracle(s, profile);
    for (std::size_t step = 0; step < s.steps.size(); ++step) {
      const TimelineStep& state = oracle.timeline().steps()[step];
      if (!state.defined || !std::holds_alternative<Append>(s.steps[step])) continue;
      for (std::int64_t entry = 0; entry < s.batch; ++entry) {
        const std::int64_t queries = state.entries[static_cast<std::size_t>(entry)].queries;
        if (queries == 0) continue;
        const std::int64_t query = source.between(0, queries - 1);
        const std::int64_t head = source.between(0, s.query_heads - 1);
        check(oracle, step, entry, query, head, source.between(0, s.value_head_size - 1));
      }
    }
  }
}

TEST(Oracle, TheTruthIsTheDefinition) {
  int outputs = 0;
  on_random_outputs(ElementType::f64, 60,
                    [&](Oracle& oracle, std::size_t step, std::int64_t entry, std::int64_t query,
                        std::int64_t head, std::int64_t lane) {
                      const Quad truth = truth_of(oracle, step, entry, query, head, lane);
                      const Quad told(oracle.exact_output(step, entry, query, head, lane));
                      EXPECT_LE(abs(Quad(told - truth)), abs(truth) * Quad(1e-27) + Quad(1e-30))
                          << canonical_text(oracle.scenario());
                      ++outputs;
                    });
  EXPECT_GT(outputs, 100);
}

TEST(Oracle, TheCheapTierIsWithinItsUncertaintyOfTheTruth) {
  double largest = 0;
  int known = 0, unknown = 0;
  const Reading right;
  on_random_outputs(
      ElementType::f32, 150,
      [&](Oracle& oracle, std::size_t step, std::int64_t entry, std::int64_t query,
          std::int64_t head, std::int64_t lane) {
        const Scenario& s = oracle.scenario();
        const Expected& expected = oracle.expected(step);
        const std::size_t i = at(s, expected, entry, query, head, lane);
        const Quad truth(oracle.exact_output(step, entry, query, head, lane));
        const Quad error = abs(Quad(Quad(expected.output[i]) - truth));
        const double doubt = expected.doubt[i / static_cast<std::size_t>(s.value_head_size)];
        (doubt < 1e-6 ? known : unknown) += 1;
        const double allowed = doubt < 1e-6 ? doubt * expected.bound[i] : expected.uncertainty[i];
        EXPECT_LE(error, Quad(allowed) + Quad(1e-29));

        Gatherer gatherer(s, oracle.timeline(), oracle.fill(), 0x1p-24, right);
        const AttentionRowInput& input = gatherer.row(step, entry, head, query);
        if (input.keys.empty()) return;
        CheapRow row{ArithmeticProfile{}};
        row.evaluate(input, static_cast<std::size_t>(s.value_head_size));
        const double uncertainty = row.uncertainty(static_cast<std::size_t>(lane));
        EXPECT_LE(error, Quad(uncertainty) + Quad(1e-29));
        // The row here is judged by the target's own precision.
        if (doubt < 1e-6 && !s.softmax_precision) {
          EXPECT_LE(uncertainty, allowed);
        }
        if (uncertainty > 0) largest = std::max(largest, static_cast<double>(error) / uncertainty);
      });
  EXPECT_GT(known, 100);
  EXPECT_LT(unknown * 10, known);
  EXPECT_GT(largest, 1e-3);  // The uncertainty is a bound, not a guess far off.
}

/// What healthy targets answer is decided in double: the truth is for what lies at the limit.
TEST(Oracle, TheCheapTierAnswersHealthyScenariosAlone) {
  ScenarioSource source(78, true);
  int scenarios = 0, handed_over = 0;
  for (int i = 0; i < 400; ++i) {
    Scenario s = source.valid();
    if (s.element_type == ElementType::f64) continue;  // No tier is cheaper than what is judged.
    ArithmeticProfile profile;
    profile.output_type = s.element_type;
    Oracle oracle(s, profile);
    for (std::size_t step = 0; step < s.steps.size(); ++step) {
      const TimelineStep& state = oracle.timeline().steps()[step];
      if (!state.defined || !std::holds_alternative<Append>(s.steps[step])) continue;
      const Expected& expected = oracle.expected(step);
      for (std::int64_t entry = 0; entry < s.batch; ++entry) {
        const std::int64_t queries = state.entries[static_cast<std::size_t>(entry)].queries;
        for (std::int64_t query = 0; query < queries; ++query) {
          for (std::int64_t head = 0; head < s.query_heads; ++head) {
            for (std::int64_t lane = 0; lane < s.value_head_size; ++lane) {
              const std::size_t j = at(s, expected, entry, query, head, lane);
              // An error of up to half the bound, then the store.
              const double error =
                  expected.bound[j] * static_cast<double>(source.between(-50, 50)) / 100;
              const double observed = round_to(s.element_type, expected.output[j] + error);
              oracle.bound_ratio(step, entry, query, head, lane, observed);
            }
          }
        }
      }
    }
    ++scenarios;
    handed_over += oracle.truths_asked() > 0 ? 1 : 0;
  }
  EXPECT_GT(scenarios, 250);
  EXPECT_LT(handed_over * 100, scenarios) << handed_over << " of " << scenarios;
}

TEST(Oracle, BothTiersGiveTheSameVerdict) {
  int above = 0;
  int below = 0;
  for (const ElementType type : {ElementType::f32, ElementType::f16, ElementType::f64}) {
    on_random_outputs(
        type, 60,
        [&](Oracle& oracle, std::size_t step, std::int64_t entry, std::int64_t query,
            std::int64_t head, std::int64_t lane) {
          const Expected& expected = oracle.expected(step);
          const std::size_t i = at(oracle.scenario(), expected, entry, query, head, lane);
          const double limit = expected.bound[i];
          if (limit < 1e-300) return;
          const Quad truth = truth_of(oracle, step, entry, query, head, lane);
          // From far inside to far outside, and as near to the limit as doubles come.
          for (const double factor :
               {0.0, 0.5, 1 - 1e-9, 1 - 1e-15, 1.0, 1 + 1e-15, 1 + 1e-9, 3.0}) {
            for (const double side : {-1.0, 1.0}) {
              const double observed = static_cast<double>(truth) + side * factor * limit;
              const Quad distance = abs(Quad(Quad(observed) - truth));
              const double ratio = oracle.bound_ratio(step, entry, query, head, lane, observed);
              ASSERT_EQ(ratio > 1, distance > Quad(limit)) << factor;
              const auto exact = static_cast<double>(Quad(distance / Quad(limit)));
              ASSERT_NEAR(ratio, exact, 1e-3 * std::max(1.0, exact));
              (ratio > 1 ? above : below) += 1;
            }
          }
        });
  }
  EXPECT_GT(above, 500);
  EXPECT_GT(below, 500);
}

/// Inside, at the limit, outside and not finite, in one row.
TEST(Oracle, RatiosOfARowAreThoseOfItsElements) {
  int rows = 0;
  for (const ElementType type : {ElementType::f32, ElementType::f64}) {
    on_random_outputs(
        type, 60,
        [&](Oracle& oracle, std::size_t step, std::int64_t entry, std::int64_t query,
            std::int64_t head, std::int64_t) {
          const Scenario& s = oracle.scenario();
          const Expected& expected = oracle.expected(step);
          const std::size_t first = at(s, expected, entry, query, head, 0);
          const double factors[] = {0,         0.5, -1,
                                    1 + 1e-15, -3,  std::numeric_limits<double>::infinity()};
          std::vector<double> observed;
          for (std::size_t c = 0; c < static_cast<std::size_t>(s.value_head_size); ++c) {
            observed.push_back(expected.output[first + c] +
                               factors[c % std::size(factors)] * expected.bound[first + c]);
          }
          std::vector<double> ratios(observed.size());
          oracle.bound_ratios(step, entry, query, head, observed, ratios);
          for (std::size_t c = 0; c < observed.size(); ++c) {
            EXPECT_EQ(ratios[c], oracle.bound_ratio(step, entry, query, head,
                                                    static_cast<std::int64_t>(c), observed[c]))
                << c;
          }
          ++rows;
        });
  }
  EXPECT_GT(rows, 100);
}

TEST(Oracle, BoundsAreTheSumsOfTheirTerms) {
  on_random_outputs(
      ElementType::f16, 60,
      [&](Oracle& oracle, std::size_t step, std::int64_t entry, std::int64_t query,
          std::int64_t head, std::int64_t lane) {
        const Expected& expected = oracle.expected(step);
        EXPECT_EQ(oracle.bound_terms(step, entry, query, head, lane).total(),
                  expected.bound[at(oracle.scenario(), expected, entry, query, head, lane)]);
      });
}

TEST(Oracle, LendsItsOperandsToThoseWithTheSameRoundings) {
  const Scenario s = gqa({Append{{3}, {3}, 0}});
  Oracle oracle(s, {});
  Operands* operands = oracle.operands(0x1p-24);
  ASSERT_NE(operands, nullptr);
  EXPECT_EQ(operands->stored({0, {{2}, 0}, 0}).keys[1], oracle.fill().key(0, 0, {{2}, 0}, 1));
  EXPECT_EQ(oracle.operands(0x1p-11), nullptr) << "keys would have other doubts";
  Reading wrong;
  wrong.without_norm = true;
  Oracle other(s, {}, wrong);
  EXPECT_EQ(other.operands(0x1p-24), nullptr);
}

TEST(Oracle, WhatIsNotFiniteIsInfinitelyOverTheBound) {
  Oracle oracle(gqa({Append{{3}, {3}, 0}}), {});
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double observed : {kInfinity, -kInfinity, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_EQ(oracle.bound_ratio(0, 0, 1, 2, 3, observed), kInfinity);
  }
}

TEST(Oracle, AnInfiniteBoundJudgesNothingFinite) {
  ArithmeticProfile hopeless;
  hopeless.accumulator_roundoff = 0.5;
  Oracle oracle(gqa({Append{{3}, {3}, 0}}), hopeless);
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
            expected.output[at(s, expected, 0, query, head, position_lane(s, 0, 0, {key}))];
        EXPECT_NEAR(output, visible ? 1.0 / static_cast<double>(seen.size()) : 0.0, 1e-15);
      }
    }
  }
}

TEST(Oracle, APastNearTheLargestLengthCostsNoMoreThanItsWindow) {
  Scenario s = gqa({Past{{kMaxLength - 2}}, Append{{2}, {2}, 0}}, FillKind::needles);
  s.cache = {LayoutKind::block, 6, 4};
  ASSERT_TRUE(validate(s).empty());
  Oracle oracle(s, {});
  EXPECT_TRUE(std::isfinite(oracle.expected(1).output[0]));
}

TEST(Oracle, OutlivesTheScenarioItWasGiven) {
  auto scenario = std::make_unique<Scenario>(gqa({Append{{3}, {3}, 0}}, FillKind::needles));
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
