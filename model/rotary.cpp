// Positions, angles and pairs of the rotary embedding.
#include "model/rotary.h"

#include <algorithm>
#include <cmath>
#include <variant>

namespace kvcheck::model {
namespace {

constexpr double kBase = 10000.0;

/// sequence_length of a step: its widest entry.
std::int64_t step_width(const TimelineStep& step) {
  std::int64_t width = 0;
  for (const EntryStep& entry : step.entries) {
    width = std::max({width, entry.queries, entry.length - entry.past});
  }
  return width;
}

/// Position of token 0; queries of a step without tokens stand at the end.
std::int64_t first_token(const EntryStep& entry) { return entry.origin.value; }

}  // namespace

bool is_first_prompt(const Scenario& scenario, const Timeline& timeline, std::size_t step) {
  const auto& entries = timeline.steps()[step].entries;
  const bool evicts = scenario.cache.layout != LayoutKind::full;
  const bool shared = std::all_of(entries.begin(), entries.end(), [](const EntryStep& entry) {
    return entry.length == entry.past;
  });
  std::int64_t longest = 0;
  for (const EntryStep& entry : entries) {
    // An entry that idles while others bring tokens is expressed by query lengths alone.
    if (entry.length == 0 || (!shared && entry.past != 0)) return false;
    if (evicts && entry.length != entries.front().length) return false;
    longest = std::max(longest, entry.length);
  }
  return step_width(timeline.steps()[step]) == longest;
}

std::int64_t rotary_position(const Scenario& scenario, const Timeline& timeline, std::size_t step,
                             std::int64_t entry, std::int64_t token) {
  const auto& state = timeline.steps()[step];
  const auto& around = state.entries[static_cast<std::size_t>(entry)];
  if (!scenario.rotary->position_ids) return first_token(around) + token;
  const PositionIds& ids = *scenario.rotary->position_ids;
  if (is_first_prompt(scenario, timeline, step)) {
    return ids.shift + ids.stride * first_token(state.entries.front()) + token;
  }
  const std::int64_t width = step_width(state);
  const std::int64_t flat = entry * width + token;
  const std::int64_t columns = width + ids.extra_columns;
  const auto& source = state.entries[static_cast<std::size_t>(flat / columns)];
  return ids.shift + ids.stride * (first_token(source) + flat % columns);
}

std::vector<std::vector<std::int64_t>> position_ids(const Scenario& scenario,
                                                    const Timeline& timeline, std::size_t step) {
  const PositionIds& ids = *scenario.rotary->position_ids;
  const auto& state = timeline.steps()[step];
  std::vector<std::vector<std::int64_t>> rows;
  for (const EntryStep& entry : state.entries) {
    auto& row = rows.emplace_back();
    for (std::int64_t i = 0; i < step_width(state) + ids.extra_columns; ++i) {
      row.push_back(ids.shift + ids.stride * (first_token(entry) + i));
    }
  }
  return rows;
}

std::int64_t rotary_rows(const Scenario& scenario, const Timeline& timeline) {
  std::int64_t rows = 1;
  for (std::size_t step = 0; step < scenario.steps.size(); ++step) {
    const auto& state = timeline.steps()[step];
    for (const EntryStep& entry : state.entries) rows = std::max(rows, entry.length);
    if (!std::holds_alternative<Append>(scenario.steps[step])) continue;
    const std::int64_t width = step_width(state);
    for (const EntryStep& entry : state.entries) {
      std::int64_t last = first_token(entry) + width - 1;
      if (const auto& ids = scenario.rotary->position_ids) {
        // The first prompt counts up from element 0 by one.
        last = std::max(ids->shift + ids->stride * (last + ids->extra_columns),
                        ids->shift + ids->stride * first_token(state.entries.front()) + width - 1);
      }
      rows = std::max(rows, last + 1);
    }
  }
  return rows;
}

std::int64_t rotary_lanes(const Scenario& scenario) {
  return scenario.rotary->dim == 0 ? scenario.head_size : scenario.rotary->dim;
}

Rotary::Rotary(const Scenario& scenario, bool other_pairs)
    : type_(scenario.element_type), interleaved_(scenario.rotary->interleaved != other_pairs) {
  const std::int64_t turning = rotary_lanes(scenario);
  for (std::int64_t pair = 0; pair < turning / 2; ++pair) {
    frequencies_.push_back(
        std::pow(kBase, -2.0 * static_cast<double>(pair) / static_cast<double>(turning)));
  }
}

Turn Rotary::turn(std::int64_t position, std::int64_t pair) const {
  const double angle = static_cast<double>(position) * frequencies_[static_cast<std::size_t>(pair)];
  return {round_to(type_, std::cos(angle)), round_to(type_, std::sin(angle))};
}

Rotary::Lanes Rotary::lanes(std::int64_t pair) const {
  const auto i = static_cast<std::size_t>(pair);
  if (interleaved_) return {2 * i, 2 * i + 1};
  return {i, i + frequencies_.size()};
}

}  // namespace kvcheck::model
