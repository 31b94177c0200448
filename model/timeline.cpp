// Step-by-step simulation of the lengths that the cache holds.
#include "model/timeline.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace kvcheck::model {
namespace {

/// Which row of length T-k stands in the way, for people.
std::string lost_row(const Layout& layout, std::int64_t reach, std::int64_t length,
                     std::int64_t tokens) {
  const std::int64_t shorter = length - tokens;
  const Position oldest = layout.oldest_required(shorter);
  const auto row = layout.row_of(shorter, oldest);
  // The contract of the block layout refuses the drop of everything by its formula alone.
  if (!row) {
    return fmt::format("L({})={} but L({})-{}={}", shorter, layout.resident(shorter), length,
                       tokens, layout.resident(length) - tokens);
  }
  const auto taken = layout.position_in_row(reach, *row);
  return fmt::format("length {} needs position {} in row {}, which {}", shorter, oldest.value,
                     row->value,
                     taken ? fmt::format("position {} has taken", taken->value) : "is freed");
}

/// Attention with nonpad_kv_seqlen counts queries from the end, and so does gqa for a step that
/// brings no tokens (shared KV).
bool queries_stand_at_the_end(const Scenario& scenario, const Append& append) {
  if (scenario.op == Operator::attention) return scenario.nonpad_kv_seqlen;
  return std::all_of(append.tokens.begin(), append.tokens.end(),
                     [](std::int64_t n) { return n == 0; });
}

/// Positions evicted so far.
std::int64_t all_evicted(const EntryStep& entry) { return entry.length - entry.resident; }

/// What the rows hold for the length and the reach of `entry`.
void note_layout(EntryStep& entry, const Layout& layout) {
  const std::int64_t dropped = entry.reach - entry.length;
  entry.resident = layout.resident(entry.reach) - dropped;
  entry.first_position = layout.first_position(entry.reach);
  entry.max_exact_rollback =
      std::max<std::int64_t>(0, layout.max_exact_rollback(entry.reach) - dropped);
}

/// Rolls `entry` back to its length; the reason if that is not exact.
std::string roll_back(EntryStep& entry, const Layout& layout, std::int64_t reach) {
  const std::int64_t from_reach = reach - entry.length;
  const bool exact = layout.rollback_is_exact(reach, from_reach);
  const bool kept = exact && !layout.rollback_restores(reach, from_reach);
  entry.reach = kept ? reach : entry.length;
  return exact ? "" : lost_row(layout, reach, entry.past, entry.past - entry.length);
}

void note_inexact(TimelineStep& step, const EntryStep& before, std::size_t b,
                  const std::string& lost) {
  if (!step.defined) return;
  step.defined = false;
  const EntryStep& entry = step.entries[b];
  step.undefined_reason =
      fmt::format("rollback of {} at T={} is not exact{}: {}; the largest exact depth there is {}",
                  entry.past - entry.length, entry.past,
                  step.entries.size() > 1 ? fmt::format(" in batch entry {}", b) : "", lost,
                  before.max_exact_rollback);
}

}  // namespace

Timeline::Timeline(const Scenario& scenario)
    : layout_(make_layout(scenario.cache)),
      entries_(scenario.steps.size() * static_cast<std::size_t>(scenario.batch)),
      newest_(entries_.size(), kNone) {
  const auto batch = static_cast<std::size_t>(scenario.batch);
  steps_.reserve(scenario.steps.size());
  spans_.reserve(entries_.size());
  const EntryStep nothing;
  std::string lost;

  for (std::size_t i = 0; i < scenario.steps.size(); ++i) {
    const std::size_t first = i * batch;
    TimelineStep state;
    if (i > 0) state = steps_[i - 1];
    state.entries = std::span(entries_).subspan(first, batch);
    for (std::size_t b = 0; b < batch; ++b) {
      const EntryStep& before = i > 0 ? entries_[first - batch + b] : nothing;
      const std::int64_t top = i > 0 ? newest_[first - batch + b] : kNone;
      EntryStep& entry = entries_[first + b];
      lost.clear();
      newest_[first + b] = advance(scenario, scenario.steps[i], b, before, top, entry, lost);
      entry.rollback_exact = lost.empty();
      if (!entry.rollback_exact) note_inexact(state, before, b, lost);
      note_layout(entry, *layout_);
      entry.evicted = std::max<std::int64_t>(0, all_evicted(entry) - all_evicted(before));
      buffer_rows_ = std::max(buffer_rows_, entry.length);
    }
    steps_.push_back(std::move(state));
  }
  if (scenario.cache.capacity > 0) buffer_rows_ = scenario.cache.capacity;
}

std::int64_t Timeline::advance(const Scenario& scenario, const Step& step, std::size_t b,
                               const EntryStep& before, std::int64_t top, EntryStep& entry,
                               std::string& lost) {
  entry.past = before.length;
  if (const auto* append = std::get_if<Append>(&step)) {
    entry.length = entry.past + append->tokens[b];
    entry.reach = std::max(before.reach, entry.length);
    entry.queries = append->queries[b];
    entry.origin = {queries_stand_at_the_end(scenario, *append) ? entry.length - entry.queries
                                                                : entry.past};
    entry.staged = layout_->stages(entry.past, append->tokens[b]);
    return append->tokens[b] > 0 ? with_tokens(top, entry.past, append->generation) : top;
  }
  if (const auto* past = std::get_if<Past>(&step)) {
    entry.length = entry.reach = past->tokens[b];
    return entry.length > 0 ? with_tokens(kNone, 0, 0) : top;
  }
  entry.length = entry.past - std::get<Rollback>(step).tokens[b];
  lost = roll_back(entry, *layout_, before.reach);
  return without_tokens(top, entry.length);
}

std::int64_t Timeline::with_tokens(std::int64_t top, std::int64_t begin, std::int64_t generation) {
  spans_.push_back({begin, generation, top, steps_.size()});
  return static_cast<std::int64_t>(spans_.size()) - 1;
}

std::int64_t Timeline::without_tokens(std::int64_t top, std::int64_t length) const {
  while (top != kNone && spans_[static_cast<std::size_t>(top)].begin >= length) {
    top = spans_[static_cast<std::size_t>(top)].below;
  }
  return top;
}

std::vector<Written> Timeline::written(std::size_t step, std::int64_t entry,
                                       std::span<const Position> positions) const {
  std::vector<Written> all;
  written(step, entry, positions, all);
  return all;
}

void Timeline::written(std::size_t step, std::int64_t entry, std::span<const Position> positions,
                       std::vector<Written>& all) const {
  all.assign(positions.size(), {});
  std::int64_t top = newest(step, entry);
  for (std::size_t i = positions.size(); i-- > 0;) {
    while (top != kNone && spans_[static_cast<std::size_t>(top)].begin > positions[i].value) {
      top = spans_[static_cast<std::size_t>(top)].below;
    }
    if (top == kNone) break;
    const Span& span = spans_[static_cast<std::size_t>(top)];
    all[i] = {span.generation, span.step};
  }
}

Written Timeline::written(std::size_t step, std::int64_t entry, Position position) const {
  std::int64_t top = newest(step, entry);
  while (top != kNone && spans_[static_cast<std::size_t>(top)].begin > position.value) {
    top = spans_[static_cast<std::size_t>(top)].below;
  }
  if (top == kNone) return {};
  const Span& span = spans_[static_cast<std::size_t>(top)];
  return {span.generation, span.step};
}

std::int64_t Timeline::generation(std::size_t step, std::int64_t entry, Position position) const {
  return written(step, entry, position).generation;
}

std::optional<Position> Timeline::position_in_row(std::size_t step, std::int64_t entry,
                                                  Row row) const {
  const auto position = layout_->position_in_row(at(step, entry).reach, row);
  if (position && position->value >= at(step, entry).length) return {};
  return position;
}

std::optional<Row> Timeline::row_of(std::size_t step, std::int64_t entry, Position position) const {
  if (position.value >= at(step, entry).length) return {};
  return layout_->row_of(at(step, entry).reach, position);
}

}  // namespace kvcheck::model
