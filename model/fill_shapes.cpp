// Shaped fills as closed forms of position and hash.
#include "model/fill_shapes.h"

#include <algorithm>
#include <cmath>

#include "model/counter_hash.h"

namespace kvcheck::model {
namespace {

enum Purpose : std::uint64_t { kShape = 21, kStep = 22, kPattern = 23, kPair = 24, kLevel = 25 };

/// Logits of the size that finite sentinels for -infinity do not reach.
constexpr double kFar = 6e4;
constexpr double kFarWhenRounded = 96;

/// What a query multiplies the level of a key with.
constexpr double kQueryShare = 64;
constexpr double kLargestQuery = 2048;

/// 2^15 terms of it still sum up in f32.
constexpr double kHuge = 0x1p112;
constexpr double kHugeF16 = 49152;

constexpr double kPairMagnitude = 1024;

double sign_of(std::uint64_t hash) { return (hash & 1) != 0 ? -1.0 : 1.0; }

/// [1, 1.25) in steps of 1/128, from bits of the hash that sign_of does not use.
double magnitude(std::uint64_t hash) { return 1.0 + static_cast<double>((hash >> 1) & 31) / 128.0; }

bool narrow(ElementType type) { return type == ElementType::f16 || type == ElementType::bf16; }

double lane_scale(const Scenario& scenario) {
  const auto lanes = static_cast<double>(scenario.head_size);
  return lanes * std::abs(scenario.scale.value_or(1.0 / std::sqrt(lanes)));
}

// extreme

double far(const Scenario& scenario) {
  return narrow(scenario.element_type) && scenario.rotary ? kFarWhenRounded : kFar;
}

/// The logit that a key at `position` has under all queries, before noise.
double level(const Scenario& scenario, const ShapedRow& row) {
  const double limit = far(scenario);
  const std::uint64_t hash = counter_hash(row.own, kLevel);
  const double slope =
      std::ldexp(0.5, 3 * static_cast<int>(counter_hash(scenario.fill.seed, kStep) % 3));
  const double climb = std::min(slope * static_cast<double>(row.position), limit);
  switch (extreme_shape(scenario)) {
    case ExtremeShape::ascending:
      return climb;
    case ExtremeShape::descending:
      return -climb;
    case ExtremeShape::far_below:
      return -limit;
    case ExtremeShape::above_exp:
      return std::min(104.0, limit);
    case ExtremeShape::spread:
      if (hash % 3 == 0) return 90 + static_cast<double>((hash >> 8) % 8);
      return -std::min(std::ldexp(1.0, static_cast<int>((hash >> 8) % 16)), limit);
    case ExtremeShape::huge_values:
      break;
  }
  return 0;
}

double pattern(const ShapedRow& row, std::int64_t lane) {
  return sign_of(nth_of(counter_hash(row.column, kPattern), lane));
}

double extreme_key(const Scenario& scenario, const ShapedRow& row, std::int64_t lane) {
  const std::uint64_t hash = nth_of(row.own, lane);
  if (lane % 2 != 0 || extreme_shape(scenario) == ExtremeShape::huge_values) {
    return sign_of(hash) * magnitude(hash);
  }
  // Half of the lanes bring the whole logit.
  const auto lanes = static_cast<double>(scenario.head_size);
  const double share = lanes / std::ceil(lanes / 2) / kQueryShare;
  return pattern(row, lane) * share * (level(scenario, row) + roughly_normal(hash));
}

double extreme_value(const Scenario& scenario, const ShapedRow& row, std::int64_t lane) {
  const std::uint64_t hash = nth_of(row.own, lane);
  if (extreme_shape(scenario) != ExtremeShape::huge_values) return roughly_normal(hash);
  const double unit = scenario.element_type == ElementType::f16 ? kHugeF16 : kHuge;
  return sign_of(hash) * unit * magnitude(hash);
}

double extreme_query(const Scenario& scenario, const ShapedRow& row, std::int64_t lane) {
  const double normal = roughly_normal(nth_of(row.own, lane));
  if (lane % 2 != 0 || extreme_shape(scenario) == ExtremeShape::huge_values) return normal;
  const double gain = std::min(kQueryShare / lane_scale(scenario), kLargestQuery);
  // A little of its own, so that queries differ.
  return pattern(row, lane) * gain * (1 + normal / 64);
}

// ties and cancelling: queries have one lane.

bool asked_lane(const Scenario& scenario, std::int64_t lane) {
  return lane == scenario.head_size - 1;
}

std::uint64_t pair_hash(const ShapedRow& row, std::int64_t lane) {
  return nth_of(counter_hash(row.column, kPair, row.position / 2), lane);
}

/// A norm makes lanes comparable only where all have the same magnitude.
double own_code(const Scenario& scenario, const ShapedRow& row, std::int64_t lane) {
  const std::uint64_t hash = nth_of(row.own, lane);
  return sign_of(hash) * (scenario.qk_norm ? 1.0 : magnitude(hash));
}

double one_lane_key(const Scenario& scenario, const ShapedRow& row, std::int64_t lane) {
  if (!asked_lane(scenario, lane)) return own_code(scenario, row, lane);
  if (scenario.fill.kind == FillKind::ties || scenario.qk_norm) return 1.0;
  return roughly_normal(pair_hash(row, lane));
}

double one_lane_query(const Scenario& scenario, const ShapedRow& row, std::int64_t lane) {
  if (!asked_lane(scenario, lane)) return 0;
  const std::uint64_t hash = nth_of(row.own, lane);
  return 2 * sign_of(hash) * magnitude(hash);
}

double cancelling_value(const Scenario& scenario, const ShapedRow& row, std::int64_t lane) {
  const std::uint64_t pair = pair_hash(row, lane);
  const std::uint64_t own = nth_of(row.own, lane);
  const bool coarse = narrow(scenario.element_type);
  // Multiples of 1/32, so that the last two bits of bf16 are left for the difference.
  const double shared = 1.0 + static_cast<double>((pair >> 1) & 7) / 32.0;
  const double last =
      coarse ? static_cast<double>(own & 3) / 128.0 : static_cast<double>(own & 31) * 0x1p-20;
  const double unit =
      scenario.cache.quantisation.kind == QuantisationKind::none ? kPairMagnitude : 1.0;
  return (row.position % 2 != 0 ? -1.0 : 1.0) * sign_of(pair) * unit * (shared + last);
}

double integer(std::uint64_t hash, std::int64_t most) {
  return static_cast<double>(
      static_cast<std::int64_t>(hash % static_cast<std::uint64_t>(2 * most + 1)) - most);
}

}  // namespace

bool is_shaped_fill(FillKind kind) {
  return kind == FillKind::extreme || kind == FillKind::ties || kind == FillKind::cancelling ||
         kind == FillKind::integers;
}

ExtremeShape extreme_shape(const Scenario& scenario) {
  return static_cast<ExtremeShape>(counter_hash(scenario.fill.seed, kShape) % 6);
}

double shaped_key(const Scenario& scenario, const ShapedRow& row, std::int64_t lane) {
  double element = 0;
  if (scenario.fill.kind == FillKind::integers) {
    element = integer(nth_of(row.own, lane), 4);
  } else if (scenario.fill.kind == FillKind::extreme) {
    element = extreme_key(scenario, row, lane);
  } else {
    element = one_lane_key(scenario, row, lane);
  }
  return round_to(scenario.element_type, element);
}

double shaped_value(const Scenario& scenario, const ShapedRow& row, std::int64_t lane) {
  double element = 0;
  switch (scenario.fill.kind) {
    case FillKind::integers:
      element = integer(nth_of(row.own, lane), 16) / 4;
      break;
    case FillKind::extreme:
      element = extreme_value(scenario, row, lane);
      break;
    case FillKind::cancelling:
      element = cancelling_value(scenario, row, lane);
      break;
    default:
      element = roughly_normal(nth_of(row.own, lane));
  }
  return round_to(scenario.element_type, element);
}

double shaped_query(const Scenario& scenario, const ShapedRow& row, std::int64_t lane) {
  double element = 0;
  if (scenario.fill.kind == FillKind::integers) {
    element = integer(nth_of(row.own, lane), 1);
  } else if (scenario.fill.kind == FillKind::extreme) {
    element = extreme_query(scenario, row, lane);
  } else {
    element = one_lane_query(scenario, row, lane);
  }
  return round_to(scenario.element_type, element);
}

}  // namespace kvcheck::model
