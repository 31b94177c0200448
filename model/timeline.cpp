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

/// Attention with nonpad_kv_seqlen counts queries from the end, and so does gqa for a step that
/// brings no tokens (shared KV).
bool queries_stand_at_the_end(const Scenario& scenario, const Append& append) {
  if (scenario.op == Operator::attention) return scenario.nonpad_kv_seqlen;
  return std::all_of(append.tokens.begin(), append.tokens.end(),
                     [](std::int64_t n) { return n == 0; });
}

void note_layout(EntryStep& entry, const Layout& layout) {
  entry.resident = layout.resident(entry.length);
  entry.first_position = layout.first_position(entry.length);
  entry.evicted = std::max<std::int64_t>(
      0, entry.first_position.value - layout.first_position(entry.past).value);
  entry.max_exact_rollback = layout.max_exact_rollback(entry.length);
}

}  // namespace

Timeline::Timeline(const Scenario& scenario) {
  const auto layout = make_layout(scenario.cache);
  const auto batch = static_cast<std::size_t>(scenario.batch);
  std::vector<std::int64_t> lengths(batch, 0);
  std::vector<std::int64_t> tops(batch, kNone);
  TimelineStep state;

  for (const Step& step : scenario.steps) {
    state.entries.assign(batch, {});
    for (std::size_t b = 0; b < batch; ++b) {
      EntryStep& entry = state.entries[b];
      entry.past = lengths[b];
      if (const auto* append = std::get_if<Append>(&step)) {
        entry.length = entry.past + append->tokens[b];
        entry.queries = append->queries[b];
        entry.origin = {queries_stand_at_the_end(scenario, *append)
                            ? entry.length - entry.queries
                            : entry.past};
        entry.staged = layout->stages(entry.past, append->tokens[b]);
        if (append->tokens[b] > 0) {
          tops[b] = with_tokens(tops[b], entry.past, append->generation);
        }
      } else if (const auto* past = std::get_if<Past>(&step)) {
        entry.length = past->tokens[b];
        if (entry.length > 0) tops[b] = with_tokens(kNone, 0, 0);
      } else {
        const std::int64_t tokens = std::get<Rollback>(step).tokens[b];
        entry.length = entry.past - tokens;
        if (tokens > 0 && !layout->rollback_is_exact(entry.past, tokens)) {
          note_inexact(state, *layout, static_cast<std::int64_t>(b), entry.past, tokens,
                       scenario.batch);
        }
        tops[b] = without_tokens(tops[b], entry.length);
      }
      note_layout(entry, *layout);
      lengths[b] = entry.length;
      buffer_rows_ = std::max(buffer_rows_, entry.length);
    }
    steps_.push_back(state);
    newest_.push_back(tops);
  }
  if (scenario.cache.capacity > 0) buffer_rows_ = scenario.cache.capacity;
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
  std::vector<Written> all(positions.size());
  std::int64_t top = newest_[step][static_cast<std::size_t>(entry)];
  for (std::size_t i = positions.size(); i-- > 0;) {
    while (top != kNone && spans_[static_cast<std::size_t>(top)].begin > positions[i].value) {
      top = spans_[static_cast<std::size_t>(top)].below;
    }
    if (top == kNone) break;
    const Span& span = spans_[static_cast<std::size_t>(top)];
    all[i] = {span.generation, span.step};
  }
  return all;
}

std::int64_t Timeline::generation(std::size_t step, std::int64_t entry, Position position) const {
  return written(step, entry, {&position, 1}).front().generation;
}

}  // namespace kvcheck::model
