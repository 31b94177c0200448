// Pass over numbers that must move together: a failure on a boundary such as length == capacity
// survives only edits that keep the boundary.
#include <algorithm>
#include <optional>
#include <variant>
#include <vector>

#include "shrinkers/edits.h"
#include "shrinkers/passes.h"

namespace kvcheck::shrinkers {
namespace {

using model::Append;
using model::Scenario;

/// Numbers lowered by the same amount.
struct Group {
  bool window = false;
  bool capacity = false;
  std::vector<std::size_t> steps;      ///< Their tokens.
  std::optional<std::size_t> queries;  ///< Queries of this append.
};

/// Steps up to this many are coupled in all pairs, more only with their neighbours.
constexpr std::size_t kAllPairs = 4;

bool lower_number(std::int64_t& number, std::int64_t by) {
  number -= by;
  return number >= 1;
}

/// Empty when a number would fall below 1. Entries of a ragged step stop at 0.
std::optional<Scenario> lowered(const Scenario& current, const Group& group, std::int64_t by) {
  Scenario s = current;
  if (group.window && !(s.cache.window_size && lower_number(*s.cache.window_size, by))) return {};
  if (group.capacity && !lower_number(s.cache.capacity, by)) return {};
  for (const std::size_t i : group.steps) {
    if (i >= s.steps.size() || largest(tokens_of(s.steps[i])) <= by) return {};
    for (std::size_t b = 0; b < tokens_of(s.steps[i]).size(); ++b) {
      set_tokens(s.steps[i], b, std::max<std::int64_t>(0, tokens_of(s.steps[i])[b] - by));
    }
  }
  if (group.queries) {
    auto* append =
        *group.queries < s.steps.size() ? std::get_if<Append>(&s.steps[*group.queries]) : nullptr;
    if (!append || largest(append->queries) <= by) return {};
    for (auto& n : append->queries) n = std::max<std::int64_t>(0, n - by);
  }
  return s;
}

bool propose_lowered(Attempt& attempt, const Group& group, std::int64_t by) {
  const auto candidate = lowered(attempt.current(), group, by);
  return candidate && attempt.propose(*candidate);
}

/// By one `unit` first, since most groups are stuck; then by doubling and back by halving.
void lower_group(Attempt& attempt, const Group& group, std::int64_t unit = 1) {
  if (!propose_lowered(attempt, group, unit)) return;
  std::int64_t by = 2 * unit;
  while (propose_lowered(attempt, group, by)) by *= 2;
  for (by /= 2; by >= unit; by /= 2) propose_lowered(attempt, group, by);
}

std::vector<std::vector<std::size_t>> step_sets(std::size_t count) {
  std::vector<std::vector<std::size_t>> sets;
  for (std::size_t i = 0; i < count; ++i) sets.push_back({i});
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = i + 1; j < count; ++j) {
      if (count <= kAllPairs || j == i + 1) sets.push_back({i, j});
    }
  }
  if (count > 2) {
    sets.emplace_back();
    for (std::size_t i = 0; i < count; ++i) sets.back().push_back(i);
  }
  return sets;
}

/// All groups, the ones that keep the shape of the eviction (window, capacity and steps) first.
std::vector<Group> groups_of(const Scenario& s) {
  const bool window = s.cache.window_size.has_value();
  const bool capacity = s.cache.capacity > 0;
  const auto sets = step_sets(s.steps.size());
  std::vector<Group> groups;
  if (window && capacity) {
    for (const auto& steps : sets) groups.push_back({true, true, steps, std::nullopt});
    groups.push_back({true, true, {}, std::nullopt});
  }
  for (const auto& steps : sets) {
    if (capacity) groups.push_back({false, true, steps, std::nullopt});
    if (window && steps.size() == 1) groups.push_back({true, false, steps, std::nullopt});
    if (steps.size() > 1) groups.push_back({false, false, steps, std::nullopt});
  }
  if (s.op == model::Operator::attention) {
    for (std::size_t i = 0; i < s.steps.size(); ++i) {
      for (std::size_t j = 0; j <= i; ++j) groups.push_back({false, false, {j}, i});
    }
  }
  return groups;
}

/// One period of the block layout off a step: the same rows stay resident.
void lower_by_period(Attempt& attempt) {
  for (std::size_t i = 0; i < attempt.current().steps.size(); ++i) {
    const model::CacheSpec& cache = attempt.current().cache;
    if (cache.layout != model::LayoutKind::block || !cache.window_size) return;
    lower_group(attempt, {false, false, {i}, {}}, cache.capacity - *cache.window_size + 1);
  }
}

/// Window, capacity and all tokens halved, rounding up.
bool propose_halved(Attempt& attempt) {
  Scenario s = attempt.current();
  if (s.cache.window_size) *s.cache.window_size = (*s.cache.window_size + 1) / 2;
  s.cache.capacity = (s.cache.capacity + 1) / 2;
  for (model::Step& step : s.steps) {
    for (std::size_t b = 0; b < tokens_of(step).size(); ++b) {
      set_tokens(step, b, (tokens_of(step)[b] + 1) / 2);
    }
  }
  return attempt.propose(s);
}

}  // namespace

void shrink_coupled(Attempt& attempt) {
  while (propose_halved(attempt)) {
  }
  for (const Group& group : groups_of(attempt.current())) lower_group(attempt, group);
  lower_by_period(attempt);
}

}  // namespace kvcheck::shrinkers
