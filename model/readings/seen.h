// Building blocks of wrong visible sets.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "model/mask.h"
#include "model/reading.h"
#include "model/visibility.h"

namespace kvcheck::model::readings {

using Rule = VisibleRange;

/// The rule as if the query stood at `position`.
inline Rule rule_at(const QueryPlace& place, std::int64_t position) {
  return visible_range(place.scenario, place.around().length, {position});
}

/// The right numbers, layout sinks apart.
inline Rule right_rule(const QueryPlace& place) { return rule_at(place, place.position().value); }

/// Positions of the rule that the mask does not hide; those beyond the length meet no mask.
inline std::vector<Position> seen(const QueryPlace& place, const Rule& rule) {
  std::vector<Position> positions;
  for (std::int64_t j = std::max<std::int64_t>(0, rule.first); j <= rule.last; ++j) {
    const bool exists = j < place.around().length;
    const bool hidden = exists && mask_cell(place.scenario, place.timeline, place.step, place.entry,
                                            place.head, place.query, {j})
                                      .hides;
    if (!hidden) positions.push_back({j});
  }
  return positions;
}

/// The token that stands at `position`; none where nobody wrote one.
inline HeldToken held_at(const QueryPlace& place, std::int64_t entry, std::int64_t position) {
  const auto& around = place.timeline.steps()[place.step].entries[static_cast<std::size_t>(entry)];
  if (position < 0 || position >= around.length) return {entry, {{-1}, 0}, place.step};
  const Position at{position};
  const Written written = place.timeline.written(place.step, entry, {&at, 1}).front();
  return {entry, {at, written.generation}, written.step};
}

/// Longest length of any entry after the step.
inline std::int64_t longest(const QueryPlace& place) {
  std::int64_t most = 0;
  for (const EntryStep& entry : place.timeline.steps()[place.step].entries) {
    most = std::max(most, entry.length);
  }
  return most;
}

/// A reading that differs in the visible set alone.
inline Reading sees(std::vector<Position> (*visible)(const QueryPlace&)) {
  Reading reading;
  reading.visible = visible;
  return reading;
}

inline Reading distorts(void (*distort)(const QueryPlace&, AttentionRowInput&)) {
  Reading reading;
  reading.distort = distort;
  return reading;
}

inline bool always(const Scenario&) { return true; }
inline bool windowed(const Scenario& s) { return s.cache.window_size.has_value(); }
inline bool causal(const Scenario& s) { return s.causal; }
inline bool batched(const Scenario& s) { return s.batch > 1; }

}  // namespace kvcheck::model::readings
