// The tiers of the oracle on random scenarios: its own doubt, its bounds, the same verdict of both.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include <boost/multiprecision/cpp_bin_float.hpp>
#include <gtest/gtest.h>

#include "model/oracle.h"
#include "model/scenario_json.h"
#include "tests/model/definition.h"
#include "tests/model/oracle_case.h"
#include "tests/model/random_scenario.h"

namespace kvcheck::model {
namespace {

using Quad = boost::multiprecision::cpp_bin_float_quad;

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
        const std::size_t i = output_index(s, expected, entry, query, head, lane);
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
              const std::size_t j = output_index(s, expected, entry, query, head, lane);
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
          const std::size_t i = output_index(oracle.scenario(), expected, entry, query, head, lane);
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
          const std::size_t first = output_index(s, expected, entry, query, head, 0);
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
        EXPECT_EQ(
            oracle.bound_terms(step, entry, query, head, lane).total(),
            expected.bound[output_index(oracle.scenario(), expected, entry, query, head, lane)]);
      });
}

TEST(Oracle, LendsItsOperandsToThoseWithTheSameRoundings) {
  const Scenario s = gqa_of({Append{{3}, {3}, 0}});
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

}  // namespace
}  // namespace kvcheck::model
