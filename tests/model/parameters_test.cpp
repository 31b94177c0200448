// Sinks, norm weights and scales: their ranges, and what each depends on.
#include "model/parameters.h"

#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include "model/quantisation.h"

namespace kvcheck::model {
namespace {

constexpr ElementType kTypes[] = {ElementType::f32, ElementType::f16, ElementType::bf16,
                                  ElementType::f64};

Scenario quantised(QuantisationKind kind, bool per_channel, std::uint64_t seed = 1) {
  Scenario s;
  s.cache.quantisation = {kind, per_channel};
  s.fill.seed = seed;
  return s;
}

TEST(SinkLogit, StaysInItsRangeAndTakesManyValues) {
  for (const ElementType type : kTypes) {
    Scenario s;
    s.element_type = type;
    std::set<double> seen;
    for (std::int64_t head = 0; head < 100; ++head) {
      const double sink = sink_logit(s, head);
      EXPECT_GE(sink, -2);
      EXPECT_LE(sink, 2);
      EXPECT_EQ(sink, round_to(type, sink));
      seen.insert(sink);
    }
    EXPECT_GT(seen.size(), 20u);
    EXPECT_LT(*seen.begin(), 0);
    EXPECT_GT(*seen.rbegin(), 0);
  }
}

TEST(SinkLogit, WeighsAgainstTheHitsOfNeedles) {
  Scenario s;
  s.fill.kind = FillKind::needles;
  for (std::int64_t head = 0; head < 100; ++head) {
    EXPECT_GE(sink_logit(s, head), 4);
    EXPECT_LE(sink_logit(s, head), 6);
  }
}

TEST(SinkLogit, FollowsTheSeed) {
  Scenario s;
  Scenario other;
  other.fill.seed = 9;
  int differs = 0;
  for (std::int64_t head = 0; head < 50; ++head) {
    differs += sink_logit(s, head) != sink_logit(other, head) ? 1 : 0;
  }
  EXPECT_GT(differs, 40);
}

TEST(NormWeight, StaysAroundOneAndTellsTheSidesApart) {
  for (const ElementType type : kTypes) {
    Scenario s;
    s.element_type = type;
    std::set<double> seen;
    int differs = 0;
    for (std::int64_t lane = 0; lane < 100; ++lane) {
      const double query = norm_weight(s, NormSide::query, lane);
      const double key = norm_weight(s, NormSide::key, lane);
      differs += query != key ? 1 : 0;
      for (const double weight : {query, key}) {
        EXPECT_GE(weight, 0.75);
        EXPECT_LE(weight, 1.25);
        EXPECT_EQ(weight, round_to(type, weight));
        seen.insert(weight);
      }
    }
    EXPECT_GT(differs, 80);
    EXPECT_GT(seen.size(), 20u);
  }
}

TEST(CacheScale, IsOneNumberPerTensor) {
  const Scenario s = quantised(QuantisationKind::int8, false);
  const float key = cache_scale(s, CacheSide::key, 0, 0);
  const float value = cache_scale(s, CacheSide::value, 0, 0);
  EXPECT_NE(key, value);
  for (std::int64_t head = 0; head < 3; ++head) {
    for (std::int64_t lane = 0; lane < 8; ++lane) {
      EXPECT_EQ(cache_scale(s, CacheSide::key, head, lane), key);
      EXPECT_EQ(cache_scale(s, CacheSide::value, head, lane), value);
    }
  }
}

TEST(CacheScale, DiffersByHeadLaneAndSidePerChannel) {
  const Scenario s = quantised(QuantisationKind::int8, true);
  int heads = 0;
  int lanes = 0;
  int sides = 0;
  for (std::int64_t i = 0; i < 50; ++i) {
    const float scale = cache_scale(s, CacheSide::key, 0, i);
    heads += scale != cache_scale(s, CacheSide::key, 1, i) ? 1 : 0;
    lanes += scale != cache_scale(s, CacheSide::key, 0, i + 1) ? 1 : 0;
    sides += scale != cache_scale(s, CacheSide::value, 0, i) ? 1 : 0;
  }
  EXPECT_GT(heads, 40);
  EXPECT_GT(lanes, 40);
  EXPECT_GT(sides, 40);
}

TEST(CacheScale, StoresTheOnesAndZerosOfPositionFillsExactly) {
  for (const auto kind : {QuantisationKind::int8, QuantisationKind::int4, QuantisationKind::fp8}) {
    for (const auto fill :
         {FillKind::position_code, FillKind::position_block, FillKind::position_digits}) {
      for (const bool per_channel : {false, true}) {
        Scenario s = quantised(kind, per_channel);
        s.fill.kind = fill;
        const float scale = cache_scale(s, CacheSide::value, 1, 3);
        for (const double value : {0.0, 1.0, -1.0}) {
          EXPECT_EQ(dequantise(quantise(kind, scale, value), scale), value);
        }
      }
    }
  }
}

TEST(CacheScale, MakesLargeValuesClampUnderMostSeeds) {
  // The random fill reaches 3.47.
  for (const auto kind : {QuantisationKind::int8, QuantisationKind::int4, QuantisationKind::fp8}) {
    int clamps = 0;
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
      const Scenario s = quantised(kind, false, seed);
      const double scale = static_cast<double>(cache_scale(s, CacheSide::key, 0, 0));
      EXPECT_GT(scale, 0);
      // A value of usual size does not clamp.
      EXPECT_LT(2.0, code_range(kind).highest * scale);
      clamps += 3.47 > code_range(kind).highest * scale ? 1 : 0;
    }
    // For fp8 the range of the codes is as wide as the random fill's, so few seeds clamp there.
    EXPECT_GT(clamps, kind == QuantisationKind::fp8 ? 5 : 50);
  }
}

}  // namespace
}  // namespace kvcheck::model
