// cache.any_capacity: the size of the buffer changes no bit.
#include <algorithm>

#include <fmt/format.h>

#include "properties/catalog.h"
#include "properties/convert.h"
#include "properties/draw.h"
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

/// Whether every rollback that is exact with the case's own capacity is so in the variant.
bool rolls_back_as_well(const Case& c, const model::Scenario& variant) {
  if (variant.cache.layout == model::LayoutKind::full) return true;
  const bool any = std::any_of(variant.steps.begin(), variant.steps.end(), [](const auto& step) {
    return std::holds_alternative<model::Rollback>(step);
  });
  if (!any) return true;
  const auto defined = [](const model::Timeline& timeline) {
    return std::count_if(timeline.steps().begin(), timeline.steps().end(),
                         [](const model::TimelineStep& step) { return step.defined; });
  };
  // Steps that another axis has cut are defined where the whole is.
  model::Scenario whole = c.scenario();
  whole.cache.capacity = variant.cache.capacity;
  return defined(model::Timeline(whole)) >= defined(c.timeline());
}

bool turn(Case& c, std::vector<Variant>& ways, Draw& draw) {
  std::vector<std::int64_t> capacities = other_capacities(c);
  const std::int64_t first = draw.between(0, 2);
  std::rotate(capacities.begin(),
              capacities.begin() + first % static_cast<std::int64_t>(capacities.size()),
              capacities.end());
  std::vector<std::int64_t> before;
  for (const Variant& way : ways) before.push_back(way.scenario.cache.capacity);
  for (const std::int64_t capacity : capacities) {
    const bool runs = std::ranges::all_of(ways, [&](Variant& way) {
      way.scenario.cache.capacity = capacity;
      return rolls_back_as_well(c, way.scenario);
    });
    if (runs) return true;
  }
  for (std::size_t i = 0; i < ways.size(); ++i) ways[i].scenario.cache.capacity = before[i];
  return false;
}

/// out(C) = out(C') for all C, C' >= W of a windowed cache, and >= T of a full one. A rollback
/// that is exact with one capacity and not with another ends that comparison.
Judgement judge(Case& c) {
  std::vector<Variant> variants;
  for (const std::int64_t capacity : other_capacities(c)) {
    Variant variant = unchanged(c);
    variant.words = fmt::format("with a capacity of {}", capacity);
    variant.scenario.cache.capacity = capacity;
    variants.push_back(variant);
  }
  return judge_variants(c, variants, {});
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
          {Axis::Run::together, turn, kPromise}};
}

}  // namespace kvcheck::properties
