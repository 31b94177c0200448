// cache.any_capacity: the size of the buffer changes no bit.
#include <algorithm>

#include <fmt/format.h>

#include "properties/catalog.h"
#include "properties/convert.h"
#include "properties/variant.h"

namespace kvcheck::properties {
namespace {

constexpr const char* kPromise = "capacity_bits";

/// The smallest legal capacity, one row more than now, and one that the sequence never fills.
std::vector<std::int64_t> other_capacities(const Case& c) {
  const std::int64_t now = c.timeline().buffer_rows();
  std::int64_t longest = 0;
  for (const auto& step : c.timeline().steps()) {
    for (const auto& entry : step.entries) longest = std::max(longest, entry.length);
  }
  const bool evicts = c.scenario().cache.layout != model::LayoutKind::full;
  const std::int64_t smallest = evicts ? c.scenario().cache.window_size.value_or(1) : longest;
  std::vector<std::int64_t> capacities{smallest, now + 1, std::max(now, longest) + 13};
  std::erase(capacities, now);
  return capacities;
}

/// out(C) = out(C') for all C, C' >= W of a windowed cache, and >= T of a full one. A rollback
/// that is exact with one capacity and not with another ends that comparison.
Judgement judge(Case& c) {
  std::vector<Variant> variants;
  for (const std::int64_t capacity : other_capacities(c)) {
    Variant variant{c.scenario(), {}, fmt::format("with a capacity of {}", capacity)};
    variant.scenario.cache.capacity = capacity;
    variants.push_back(variant);
  }
  return judge_variants(c, variants, Kind::bits_difference);
}

std::string inapplicable(const model::Scenario& scenario, const kernels::Capabilities& target) {
  if (auto reason = unpromised(target, kPromise); !reason.empty()) return reason;
  if (scenario.op == model::Operator::attention && !scenario.nonpad_kv_seqlen) {
    return "a concatenated cache has no capacity";
  }
  if (scenario.mask.missing_columns > 0) return "the columns that the mask lacks are the buffer's";
  return fixed_data_reason(scenario);
}

}  // namespace

Property any_capacity_property() {
  return {"cache.any_capacity",
          "Every capacity from the window on, and every capacity of a full cache that holds the "
          "sequence, gives the same bits.",
          "tiles cut by the capacity, strides, work split by buffer rows, eviction that moves sums",
          inapplicable,
          judge,
          kPromise,
          3};
}

}  // namespace kvcheck::properties
