// Visible sets: a range, thinned by the mask.
#include "model/visibility.h"

#include <algorithm>

#include "model/mask.h"

namespace kvcheck::model {

std::int64_t sinks_before(const CacheSpec& cache, std::int64_t first) {
  return cache.layout == LayoutKind::sinks ? std::min(cache.sink_tokens, first) : 0;
}

VisibleRange visible_range(const Scenario& scenario, std::int64_t length, Position position) {
  const std::int64_t p = position.value;
  VisibleRange range{0, length - 1};
  if (scenario.causal) range.last = std::min(range.last, p);
  if (scenario.right_window_size)
    range.last = std::min(range.last, p + *scenario.right_window_size);
  if (scenario.cache.window_size) {
    range.first = std::max<std::int64_t>(0, p - *scenario.cache.window_size + 1);
  }
  return range;
}

std::vector<Position> visible_positions(const Scenario& scenario, const Timeline& timeline,
                                        std::size_t step, std::int64_t entry, std::int64_t head,
                                        std::int64_t query) {
  std::vector<Position> seen;
  visible_positions(scenario, timeline, step, entry, head, query, seen);
  return seen;
}

void visible_positions(const Scenario& scenario, const Timeline& timeline, std::size_t step,
                       std::int64_t entry, std::int64_t head, std::int64_t query,
                       std::vector<Position>& seen) {
  const EntryStep& state = timeline.steps()[step].entries[static_cast<std::size_t>(entry)];
  const auto [first, last] = visible_range(scenario, state.length, {state.origin.value + query});
  seen.clear();
  if (last >= first) seen.reserve(static_cast<std::size_t>(last - first + 1));
  if (scenario.mask.kind == MaskKind::none) {
    for (std::int64_t j = 0; j < sinks_before(scenario.cache, first); ++j) seen.push_back({j});
    for (std::int64_t j = first; j <= last; ++j) seen.push_back({j});
    return;
  }
  const MaskRow mask(scenario, timeline, step, entry, head, query);
  const auto look = [&](std::int64_t j) {
    if (!mask.hides({j})) seen.push_back({j});
  };
  for (std::int64_t j = 0; j < sinks_before(scenario.cache, first); ++j) look(j);
  for (std::int64_t j = first; j <= last; ++j) look(j);
}

bool heads_see_alike(const Scenario& scenario) {
  const MaskSpec& mask = scenario.mask;
  return mask.kind == MaskKind::none || mask.rank <= 2 || mask.one_head;
}

}  // namespace kvcheck::model
