// Step-by-step simulation of the lengths that the cache holds.
#include "model/timeline.h"

#include <algorithm>

#include <fmt/format.h>

#include "model/layout.h"

namespace kvcheck::model {
namespace {

void note_inexact(TimelineStep& step, const Layout& layout, std::int64_t entry, std::int64_t length,
                  std::int64_t tokens, std::int64_t batch) {
  step.entries[static_cast<std::size_t>(entry)].rollback_exact = false;
  if (!step.defined) return;
  step.defined = false;
  step.undefined_reason = fmt::format(
      "rollback of {} at T={} is not exact{}: L({})={} but L({})-{}={}; the largest exact depth "
      "there is {}",
      tokens, length, batch > 1 ? fmt::format(" in batch entry {}", entry) : "", length - tokens,
      layout.resident(length - tokens), length, tokens, layout.resident(length) - tokens,
      layout.max_exact_rollback(length));
}

}  // namespace

Timeline::Timeline(const Scenario& scenario) {
  const auto layout = make_layout(scenario.cache);
  const auto batch = static_cast<std::size_t>(scenario.batch);
  std::vector<std::int64_t> lengths(batch, 0);
  std::vector<std::vector<Span>> spans(batch);
  bool defined = true;
  std::string reason;

  for (const Step& step : scenario.steps) {
    TimelineStep state;
    state.entries.resize(batch);
    state.defined = defined;
    state.undefined_reason = reason;
    for (std::size_t b = 0; b < batch; ++b) {
      EntryStep& entry = state.entries[b];
      entry.past = lengths[b];
      if (const auto* append = std::get_if<Append>(&step)) {
        entry.length = entry.past + append->tokens[b];
        entry.queries = append->queries[b];
        entry.origin = {scenario.nonpad_kv_seqlen ? entry.length - entry.queries : entry.past};
        entry.staged = layout->stages(entry.past, append->tokens[b]);
        if (append->tokens[b] > 0) {
          spans[b].push_back({entry.past, entry.length, append->generation});
        }
      } else if (const auto* past = std::get_if<Past>(&step)) {
        entry.length = past->tokens[b];
        if (entry.length > 0) spans[b].push_back({0, entry.length, 0});
      } else {
        const std::int64_t tokens = std::get<Rollback>(step).tokens[b];
        entry.length = entry.past - tokens;
        if (tokens > 0 && !layout->rollback_is_exact(entry.past, tokens)) {
          note_inexact(state, *layout, static_cast<std::int64_t>(b), entry.past, tokens,
                       scenario.batch);
        }
        while (!spans[b].empty() && spans[b].back().begin >= entry.length) spans[b].pop_back();
        if (!spans[b].empty()) spans[b].back().end = std::min(spans[b].back().end, entry.length);
      }
      if (spans[b].size() > 1) {  // Neighbours of one generation are one span.
        auto& newest = spans[b].back();
        auto& before = spans[b][spans[b].size() - 2];
        if (newest.generation == before.generation) {
          before.end = newest.end;
          spans[b].pop_back();
        }
      }
      entry.resident = layout->resident(entry.length);
      entry.first_position = layout->first_position(entry.length);
      entry.evicted = std::max<std::int64_t>(
          0, entry.first_position.value - layout->first_position(entry.past).value);
      entry.max_exact_rollback = layout->max_exact_rollback(entry.length);
      lengths[b] = entry.length;
      buffer_rows_ = std::max(buffer_rows_, entry.length);
    }
    defined = state.defined;
    reason = state.undefined_reason;
    steps_.push_back(std::move(state));
    spans_.push_back(spans);
  }
  if (scenario.cache.capacity > 0) buffer_rows_ = scenario.cache.capacity;
}

std::int64_t Timeline::generation(std::size_t step, std::int64_t entry, Position position) const {
  for (const Span& span : spans_[step][static_cast<std::size_t>(entry)]) {
    if (position.value >= span.begin && position.value < span.end) return span.generation;
  }
  return 0;
}

}  // namespace kvcheck::model
