// Shares of equal keys beside the exact model.
#include "properties/uniform_rows.h"

#include <cmath>

#include <gtest/gtest.h>
#include <rapidcheck/Random.h>

#include "kernels/cpu/flash/cpu_flash.h"
#include "model/oracle.h"
#include "model/scenario_json.h"
#include "model/visibility.h"
#include "properties/convert.h"
#include "properties/generator.h"
#include "properties/query_walk.h"
#include "properties/read_back.h"

namespace kvcheck::properties {
namespace {

TEST(UniformRows, GiveTheShareOfTheLitKeys) {
  const auto s = model::parse_scenario(R"({"schema":1,"operator":"gqa","head_size":8,
      "smooth_softmax":true,"steps":[{"append":5}]})");
  UniformRows rows(UniformCase(s, model::ArithmeticProfile{}));
  EXPECT_DOUBLE_EQ(rows.lane(0, 5, 2).output, 2.0 / 6);
  EXPECT_DOUBLE_EQ(rows.lane(0, 3, 3).output, 3.0 / 4);
  EXPECT_EQ(rows.lane(0, 0, 0).output, 0);
  EXPECT_EQ(rows.lane(0, 0, 0).bound, 0);
  EXPECT_DOUBLE_EQ(sink_mass(s, 0), 1);
}

TEST(UniformRows, AreSharedByLaunchesThatHaveTheSameOnes) {
  auto s = model::parse_scenario(R"({"schema":1,"operator":"gqa","head_size":8,
      "query_heads":2,"steps":[{"append":5}]})");
  const model::ArithmeticProfile profile;
  const auto rows = UniformRows::of({s, profile});
  auto longer = s;
  std::get<model::Append>(longer.steps[0]).tokens = {9};
  EXPECT_EQ(UniformRows::of({longer, profile}), rows);
  auto coarse = profile;
  coarse.output_type = model::ElementType::f16;
  EXPECT_NE(UniformRows::of({s, coarse}), rows);
  auto capped = s;
  capped.softcap = 2;
  EXPECT_NE(UniformRows::of({capped, profile}), rows);
  auto smooth = s;
  smooth.smooth_softmax = true;
  EXPECT_NE(UniformRows::of({smooth, profile}), rows);
  auto sinks = s;
  sinks.head_sink = true;
  auto others = sinks;
  others.fill.seed = 7;
  EXPECT_NE(UniformRows::of({sinks, profile}), UniformRows::of({others, profile}));
  EXPECT_EQ(UniformRows::of({sinks, profile}), UniformRows::of({sinks, profile}));
}

/// Outputs and bounds of drawn scenarios under the position code, as the oracle has them.
TEST(UniformRows, HaveTheBoundsOfTheOracle) {
  const auto target = kernels::make_cpu_flash();
  const auto generator = scenario_generator(target->capabilities());
  std::int64_t compared = 0, sinks = 0, narrow = 0;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    const auto drawn = generator(rc::Random(seed), static_cast<int>(seed % 100)).value();
    if (!model::validate(drawn).empty()) continue;
    if (drawn.cache.quantisation.kind != model::QuantisationKind::none) continue;
    const auto s = with_position_fill(drawn, model::FillKind::position_code, 0);
    const auto profile = arithmetic_profile(target->capabilities(), s);
    model::Oracle oracle(s, profile);
    UniformRows rows(UniformCase(s, model::with_softmax_precision(profile, s.softmax_precision)));
    for (std::size_t i = 0; i < s.steps.size() && oracle.timeline().steps()[i].defined; ++i) {
      if (!std::holds_alternative<model::Append>(s.steps[i])) continue;
      const auto& expected = oracle.expected(i);
      for (std::int64_t b = 0; b < s.batch; ++b) {
        const auto& state = oracle.timeline().steps()[i].entries[static_cast<std::size_t>(b)];
        for (std::int64_t q = 0; q < state.queries; ++q) {
          for (std::int64_t h = 0; h < s.query_heads; ++h) {
            const auto seen = model::visible_positions(s, oracle.timeline(), i, b, h, q);
            for (std::int64_t l = 0; l < s.value_head_size; ++l) {
              std::int64_t lit = 0;
              const std::int64_t kv_head = h / (s.query_heads / s.kv_heads);
              for (const auto p : seen) lit += model::position_lane(s, b, kv_head, p) == l ? 1 : 0;
              const auto keys = static_cast<std::int64_t>(seen.size());
              const auto& lane = rows.lane(h, keys, lit);
              const auto at = model::element_index(s, expected, b, q, h, l);
              const double bound = expected.bound[at];
              ASSERT_NEAR(lane.output, expected.output[at], 1e-14) << model::content_hash(s);
              ASSERT_NEAR(lane.bound, bound, 1e-9 * bound) << model::content_hash(s);
              ++compared;
              sinks += s.head_sink ? 1 : 0;
              narrow += s.softmax_precision ? 1 : 0;
            }
          }
        }
      }
    }
  }
  EXPECT_GT(compared, 10000);
  EXPECT_GT(sinks, 100);
  EXPECT_GT(narrow, 100);
}

/// The same of values above 1: what counts as clearly within a bound is within it.
TEST(UniformRows, AreNoWiderThanTheOracleWhereValuesAreLarger) {
  const auto target = kernels::make_cpu_flash();
  const auto generator = scenario_generator(target->capabilities());
  std::int64_t compared = 0, close = 0;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    const auto drawn = generator(rc::Random(seed), static_cast<int>(seed % 100)).value();
    if (!model::validate(drawn).empty() || drawn.value_head_size < 2) continue;
    if (drawn.cache.quantisation.kind != model::QuantisationKind::none) continue;
    const auto s = with_position_fill(drawn, model::FillKind::position_digits, 1);
    const auto profile = arithmetic_profile(target->capabilities(), s);
    model::Oracle oracle(s, profile);
    UniformRows rows(UniformCase(s, model::with_softmax_precision(profile, s.softmax_precision)));
    for_each_query(s, oracle.timeline(), [&](const MeasuredQuery& query) {
      const auto& expected = oracle.expected(query.step);
      const std::int64_t kv_head = query.head / (s.query_heads / s.kv_heads);
      const double value = model::digit_value(s, query.entry, kv_head);
      for (std::int64_t l = 0; value > 1 && l < s.value_head_size; ++l) {
        std::int64_t lit = 0;
        for (const auto p : query.expected) {
          lit += model::digit_lane(s, query.entry, kv_head, p, 0) == l ? 1 : 0;
        }
        const auto keys = static_cast<std::int64_t>(query.expected.size());
        const auto& lane = rows.lane(query.head, keys, lit);
        const auto at = model::element_index(s, expected, query.entry, query.query, query.head, l);
        EXPECT_NEAR(value * lane.output, expected.output[at], 1e-13) << model::content_hash(s);
        EXPECT_LE(value * lane.scaled_bound, expected.bound[at]) << model::content_hash(s);
        close += value * lane.scaled_bound > 0.98 * expected.bound[at] ? 1 : 0;
        ++compared;
      }
      return true;
    });
  }
  EXPECT_GT(compared, 5000);
  EXPECT_GT(close, compared / 10);
}

}  // namespace
}  // namespace kvcheck::properties
