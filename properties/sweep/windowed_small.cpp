// windowed-small: every small windowed cache, every split of its tokens into steps, every rollback.
//
// The steps of a split of 12 tokens pass through every shorter split: a split of T < 12 tokens is
// the beginning of one that ends with a step of 12 - T. As every step is judged, the 2,048 splits
// of 12 stand for all 4,095 splits of 1 to 12 tokens.
#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "model/layout.h"
#include "properties/sweep/grid.h"

namespace kvcheck::properties {
namespace {

using model::Scenario;

constexpr std::int64_t kMostCapacity = 8;
constexpr std::int64_t kMostTokens = 12;

/// How the tokens before or after a rollback come.
enum class Pace : std::int16_t { none, whole, single };

/// One configuration, without its tensors.
struct Plan {
  std::int64_t capacity = 0, window = 0;
  std::int64_t cuts = 0;              ///< Of a split: bit i set = a step ends after token i + 1.
  std::int64_t rollback = 0;          ///< 0 = a split and no rollback.
  std::int64_t length = kMostTokens;  ///< Tokens before the rollback.
  bool exact = false;
  Pace before = Pace::none, after = Pace::none;
};

model::CacheSpec cache_of(std::int64_t capacity, std::int64_t window) {
  model::CacheSpec cache;
  cache.layout = model::LayoutKind::block;
  cache.capacity = capacity;
  cache.window_size = window;
  return cache;
}

/// Every (T, k): T tokens at once or one by one, k dropped, and where that is exact k + 1 new ones
/// at once or one by one.
void add_rollbacks(std::vector<Plan>& plans, std::int64_t capacity, std::int64_t window) {
  const auto layout = model::make_layout(cache_of(capacity, window));
  for (std::int64_t length = 1; length <= kMostTokens; ++length) {
    for (std::int64_t dropped = 1; dropped <= length; ++dropped) {
      Plan plan{capacity, window, 0, dropped, length, layout->rollback_is_exact(length, dropped)};
      for (const Pace before : {Pace::whole, Pace::single}) {
        if (before == Pace::single && length == 1) continue;
        plan.before = before;
        if (!plan.exact) {
          plan.after = Pace::none;
          plans.push_back(plan);
          continue;
        }
        for (const Pace after : {Pace::whole, Pace::single}) {
          plan.after = after;
          plans.push_back(plan);
        }
      }
    }
  }
}

std::vector<Plan> all_plans() {
  std::vector<Plan> plans;
  for (std::int64_t capacity = 1; capacity <= kMostCapacity; ++capacity) {
    for (std::int64_t window = 1; window <= capacity; ++window) {
      for (std::int64_t cuts = 0; cuts < (1 << (kMostTokens - 1)); ++cuts) {
        plans.push_back({capacity, window, cuts});
      }
      add_rollbacks(plans, capacity, window);
    }
  }
  return plans;
}

void append(Scenario& s, std::int64_t tokens, std::int64_t generation) {
  s.steps.emplace_back(model::Append{{tokens}, {tokens}, generation, {}});
}

void append_at(Scenario& s, Pace pace, std::int64_t tokens, std::int64_t generation) {
  if (pace == Pace::whole) append(s, tokens, generation);
  if (pace == Pace::single) {
    for (std::int64_t i = 0; i < tokens; ++i) append(s, 1, generation);
  }
}

void append_split(Scenario& s, std::int64_t cuts) {
  std::int64_t step = 1;
  for (std::int64_t i = 0; i < kMostTokens - 1; ++i, ++step) {
    if ((cuts >> i & 1) == 0) continue;
    append(s, step, 0);
    step = 0;
  }
  append(s, step, 0);
}

Scenario scenario_of(const Plan& plan, std::uint64_t seed) {
  Scenario s;
  s.head_size = s.value_head_size = 8;
  s.cache = cache_of(plan.capacity, plan.window);
  s.fill.kind = model::FillKind::random;
  s.fill.seed = seed;
  if (plan.rollback == 0) {
    append_split(s, plan.cuts);
    return s;
  }
  append_at(s, plan.before, plan.length, 0);
  s.steps.emplace_back(model::Rollback{{plan.rollback}});
  append_at(s, plan.after, plan.rollback + 1, 1);
  return s;
}

std::int64_t longest_step(const Scenario& s) {
  std::int64_t longest = 0;
  for (const auto& step : s.steps) {
    if (const auto* made = std::get_if<model::Append>(&step)) {
      longest = std::max(longest, made->tokens.front());
    }
  }
  return longest;
}

/// Whether a step gives away rows that its own queries read.
bool stages(const Scenario& s) {
  const auto layout = model::make_layout(s.cache);
  std::int64_t length = 0;
  for (const auto& step : s.steps) {
    if (const auto* made = std::get_if<model::Append>(&step)) {
      if (layout->stages(length, made->tokens.front())) return true;
      length += made->tokens.front();
    } else if (const auto* dropped = std::get_if<model::Rollback>(&step)) {
      length -= dropped->tokens.front();
    }
  }
  return false;
}

Configuration configuration(const Plan& plan, std::uint64_t seed) {
  Configuration made{scenario_of(plan, seed), {}};
  const bool rolls_back = plan.rollback > 0;
  for (const std::int64_t value :
       {plan.capacity - 1, plan.window - 1, plan.length - 1, plan.rollback,
        std::int64_t{rolls_back ? (plan.exact ? 1 : 2) : 0}, longest_step(made.scenario) - 1,
        std::int64_t{stages(made.scenario)}, std::int64_t{plan.length > plan.capacity},
        static_cast<std::int64_t>(plan.before), static_cast<std::int64_t>(plan.after)}) {
    made.at.push_back(static_cast<std::int16_t>(value));
  }
  return made;
}

std::vector<std::int64_t> numbers(std::int64_t first, std::int64_t last) {
  std::vector<std::int64_t> list;
  for (std::int64_t n = first; n <= last; ++n) list.push_back(n);
  return list;
}

std::string arithmetic_of(const std::vector<Plan>& plans) {
  std::int64_t splits = 0, exact = 0, inexact = 0;
  for (const Plan& plan : plans) {
    ++(plan.rollback == 0 ? splits : plan.exact ? exact : inexact);
  }
  return fmt::format(
      "36 pairs of capacity and window x 2,048 splits of 12 tokens = {} (every split of fewer is "
      "the beginning of one), {} ways through the exact rollbacks, {} to the inexact ones",
      with_commas(splits), with_commas(exact), with_commas(inexact));
}

}  // namespace

Grid windowed_small_grid() {
  const auto plans = std::make_shared<const std::vector<Plan>>(all_plans());
  Grid grid;
  grid.name = "windowed-small";
  grid.statement =
      "GroupQueryAttention with a windowed cache: every capacity up to 8, every window up to the "
      "capacity, every split of up to 12 tokens into steps, and every rollback.";
  grid.arithmetic = arithmetic_of(*plans);
  grid.axes = {number_axis("capacity", numbers(1, kMostCapacity)),
               number_axis("window", numbers(1, kMostCapacity)),
               number_axis("length", numbers(1, kMostTokens)),
               number_axis("rollback", numbers(0, kMostTokens)),
               {"rollback is", {"absent", "exact", "inexact"}, false},
               number_axis("longest step", numbers(1, kMostTokens + 1)),
               {"a step stages", {"no", "yes"}, false},
               {"evicts", {"no", "yes"}, false},
               {"before the rollback", {"any", "one step", "single tokens"}, false},
               {"after the rollback", {"nothing", "one step", "single tokens"}, false}};
  grid.count = static_cast<std::int64_t>(plans->size());
  grid.at = [plans](std::int64_t index) {
    return configuration((*plans)[static_cast<std::size_t>(index)],
                         static_cast<std::uint64_t>(index));
  };
  return grid;
}

}  // namespace kvcheck::properties
