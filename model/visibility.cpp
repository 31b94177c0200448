// Visible sets, written as the definition reads: a predicate over every position that exists.
#include "model/visibility.h"

#include <algorithm>

#include "model/mask.h"

namespace kvcheck::model {
namespace {

/// Sinks before the window, which begins at `first`: positions [0, result) are seen besides it.
std::int64_t sinks_before(const CacheSpec& cache, std::int64_t first) {
  return cache.layout == LayoutKind::sinks ? std::min(cache.sink_tokens, first) : 0;
}

}  // namespace

std::vector<Position> visible_positions(const Scenario& scenario, const Timeline& timeline,
                                        std::size_t step, std::int64_t entry, std::int64_t head,
                                        std::int64_t query) {
  const EntryStep& state = timeline.steps()[step].entries[static_cast<std::size_t>(entry)];
  const Position p{state.origin.value + query};
  std::int64_t first = 0;
  std::int64_t last = state.length - 1;
  if (scenario.causal) last = std::min(last, p.value);
  if (scenario.cache.window_size) {
    first = std::max<std::int64_t>(first, p.value - *scenario.cache.window_size + 1);
  }
  if (scenario.right_window_size) last = std::min(last, p.value + *scenario.right_window_size);
  std::vector<Position> seen;
  if (last >= first) seen.reserve(static_cast<std::size_t>(last - first + 1));
  const auto look = [&](std::int64_t j) {
    if (!mask_cell(scenario, timeline, step, entry, head, query, {j}).hides) seen.push_back({j});
  };
  for (std::int64_t j = 0; j < sinks_before(scenario.cache, first); ++j) look(j);
  for (std::int64_t j = first; j <= last; ++j) look(j);
  return seen;
}

}  // namespace kvcheck::model
