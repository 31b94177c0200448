// tiles: numbers of keys and head sizes around the places where kernels change their way of work.
//
// Numbers of keys: powers of two up to 4096 (vectors, tiles, pages, chunks) and the units of the
// own kernels that are none (384 rows of a unit and its multiples, tiles of 96 and 192, 512 + 64),
// each one less and one more. Head sizes: around 8, 16 and 32 lanes and what models have.
#include <algorithm>
#include <array>
#include <memory>
#include <set>

#include <fmt/format.h>

#include "properties/sweep/grid.h"

namespace kvcheck::properties {
namespace {

using model::Scenario;

constexpr std::int64_t kEdges[] = {1,   2,   4,   8,   16,  32,   64,   96,   128, 192,
                                   256, 384, 512, 576, 768, 1024, 1536, 2048, 4096};
constexpr std::int64_t kHeadSizes[] = {1, 7, 8, 9, 15, 16, 17, 24, 31, 32, 33, 64, 65, 80, 128};
/// Longer ones only with head sizes that models have.
constexpr std::int64_t kLong = 600;
constexpr std::int64_t kLongHeadSizes[] = {8, 64, 80, 128};
constexpr std::int64_t kSteps[] = {1, 3, 9};

enum class Cache : std::int16_t { full, window, block };

struct Plan {
  std::int64_t keys = 0, head_size = 0, step = 0;
  Cache cache = Cache::full;
  model::ElementType type = model::ElementType::f32;
};

std::vector<std::int64_t> key_counts() {
  std::set<std::int64_t> counts;
  for (const std::int64_t edge : kEdges) {
    for (const std::int64_t keys : {edge - 1, edge, edge + 1}) {
      if (keys > 0) counts.insert(keys);
    }
  }
  return {counts.begin(), counts.end()};
}

std::vector<Plan> all_plans() {
  const auto counts = key_counts();
  std::vector<Plan> plans;
  for (const std::int64_t head_size : kHeadSizes) {
    for (const std::int64_t step : kSteps) {
      for (const Cache cache : {Cache::full, Cache::window, Cache::block}) {
        for (const auto type : {model::ElementType::f32, model::ElementType::f16}) {
          // Long and short take turns, so that the time left can be told.
          for (const std::int64_t keys : counts) {
            if (keys > kLong && std::ranges::count(kLongHeadSizes, head_size) == 0) continue;
            if (cache == Cache::full && step > keys) continue;
            plans.push_back({keys, head_size, step, cache, type});
          }
        }
      }
    }
  }
  return plans;
}

/// A past and one step. The newest query sees `keys` keys.
Scenario scenario_of(const Plan& plan, std::uint64_t seed) {
  Scenario s;
  s.query_heads = 2;
  s.head_size = s.value_head_size = plan.head_size;
  s.element_type = plan.type;
  std::int64_t length = plan.keys;
  if (plan.cache != Cache::full) {
    s.cache.window_size = plan.keys;
    length += 70;  // Older keys than the window has, from another tile.
  }
  if (plan.cache == Cache::block) {
    s.cache.layout = model::LayoutKind::block;
    s.cache.capacity = plan.keys + 7;
    length = plan.keys + 16;  // In this step a block of 8 rows goes, for the second time.
  }
  s.fill.kind = model::FillKind::random;
  s.fill.seed = seed;
  if (length > plan.step) s.steps.emplace_back(model::Past{{length - plan.step}, {}});
  s.steps.emplace_back(model::Append{{plan.step}, {plan.step}, 0, {}});
  return s;
}

template <class List>
std::int64_t index_in(const List& list, std::int64_t value) {
  return std::ranges::find(list, value) - std::ranges::begin(list);
}

Configuration configuration(const Plan& plan, const std::vector<std::int64_t>& counts,
                            std::uint64_t seed) {
  Configuration made{scenario_of(plan, seed), {}};
  for (const std::int64_t value :
       {index_in(counts, plan.keys), index_in(kHeadSizes, plan.head_size),
        index_in(kSteps, plan.step), static_cast<std::int64_t>(plan.cache),
        std::int64_t{plan.type == model::ElementType::f16}}) {
    made.at.push_back(static_cast<std::int16_t>(value));
  }
  return made;
}

std::vector<std::int64_t> list_of(const auto& values) {
  return {std::begin(values), std::end(values)};
}

}  // namespace

Grid tiles_grid() {
  const auto plans = std::make_shared<const std::vector<Plan>>(all_plans());
  const auto counts = key_counts();
  const auto short_ones = std::ranges::count_if(counts, [](auto n) { return n <= kLong; });
  Grid grid;
  grid.name = "tiles";
  grid.statement =
      "GroupQueryAttention with a past: one, three or nine tokens whose newest query sees a number "
      "of keys at, before or after every edge of a vector, tile, page and split up to 4097, in a "
      "full cache, with a window, and in a windowed cache.";
  grid.arithmetic = fmt::format(
      "({} numbers of keys up to {} x {} head sizes + {} longer ones x {}) x 3 step lengths x 3 "
      "caches x 2 element types, less steps of more tokens than keys in a full cache",
      short_ones, kLong, std::size(kHeadSizes), std::ssize(counts) - short_ones,
      std::size(kLongHeadSizes));
  grid.axes = {number_axis("keys", counts),
               number_axis("head size", list_of(kHeadSizes)),
               number_axis("tokens", list_of(kSteps)),
               {"cache", {"full", "full with a window", "windowed"}, false},
               {"element type", {"f32", "f16"}, false}};
  grid.count = std::ssize(*plans);
  grid.at = [plans, counts](std::int64_t index) {
    return configuration((*plans)[static_cast<std::size_t>(index)], counts,
                         static_cast<std::uint64_t>(index));
  };
  return grid;
}

}  // namespace kvcheck::properties
