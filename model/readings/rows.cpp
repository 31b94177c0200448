// Wrong rows, heads and entries.
#include "model/readings/seen.h"
#include "model/wrong_models.h"

namespace kvcheck::model {
namespace {

using namespace readings;

Reading holds(HeldToken (*held)(const QueryPlace&, Position)) {
  Reading reading;
  reading.held = held;
  return reading;
}

/// The token that a rollback dropped and another one replaced.
HeldToken stale(const QueryPlace& place, Position position) {
  const HeldToken live = held_at(place, place.entry, position.value);
  for (std::size_t step = place.step; step-- > 0;) {
    const auto& around =
        place.timeline.steps()[step].entries[static_cast<std::size_t>(place.entry)];
    if (position.value >= around.length || step >= live.step) continue;
    const Written old = place.timeline.written(step, place.entry, {&position, 1}).front();
    if (old.step != live.step) return {place.entry, {position, old.generation}, old.step};
  }
  return live;
}

/// A block-evicting reader over rows that were kept as min(T, C): older tokens by the surplus.
HeldToken min_overflow(const QueryPlace& place, Position position) {
  const EntryStep& around = place.around();
  const std::int64_t kept = std::min(around.length, place.timeline.buffer_rows());
  return held_at(place, place.entry, position.value - (kept - around.resident));
}

/// The rows that a step finds moved by the eviction, read where they stood before.
HeldToken not_moved(const QueryPlace& place, Position position) {
  const EntryStep& around = place.around();
  const bool own = position.value >= around.past;
  return held_at(place, place.entry, own ? position.value : position.value - around.evicted);
}

/// The step's tokens written one row too far.
HeldToken one_row_late(const QueryPlace& place, Position position) {
  const std::int64_t past = place.around().past;
  if (position.value < past) return held_at(place, place.entry, position.value);
  return held_at(place, place.entry, position.value == past ? -1 : position.value - 1);
}

/// The step's tokens written over the newest of the past.
HeldToken over_the_newest(const QueryPlace& place, Position position) {
  const std::int64_t past = place.around().past;
  if (position.value + 1 < past) return held_at(place, place.entry, position.value);
  const std::int64_t next = position.value + 1;
  return held_at(place, place.entry, next < place.around().length ? next : -1);
}

HeldToken of_first_entry(const QueryPlace& place, Position position) {
  return held_at(place, 0, position.value);
}

HeldToken of_next_entry(const QueryPlace& place, Position position) {
  return held_at(place, (place.entry + 1) % place.scenario.batch, position.value);
}

/// The tokens of each step from the last to the first.
HeldToken step_reversed(const QueryPlace& place, Position position) {
  const HeldToken right = held_at(place, place.entry, position.value);
  const bool loaded = std::holds_alternative<Past>(place.scenario.steps[right.step]);
  if (right.token.position.value < 0 || loaded) return right;
  const EntryStep& own =
      place.timeline.steps()[right.step].entries[static_cast<std::size_t>(place.entry)];
  const Position other{own.past + own.length - 1 - position.value};
  return {place.entry, {other, right.token.generation}, right.step};
}

/// A buffer that wraps, read as if blocks had been evicted.
HeldToken ring(const QueryPlace& place, Position position) {
  const EntryStep& around = place.around();
  const std::int64_t rows = place.timeline.buffer_rows();
  if (around.length <= rows) return held_at(place, place.entry, position.value);
  const std::int64_t row = position.value - around.first_position.value;
  const std::int64_t newest = around.length - 1;
  return held_at(place, place.entry, newest - (newest - row) % rows);
}

std::int64_t modulo(const QueryPlace& place) { return place.head % place.scenario.kv_heads; }
std::int64_t first_head(const QueryPlace&) { return 0; }
std::int64_t reversed(const QueryPlace& place) {
  const Scenario& s = place.scenario;
  return s.kv_heads - 1 - place.head / (s.query_heads / s.kv_heads);
}

Reading maps(std::int64_t (*kv_head)(const QueryPlace&)) {
  Reading reading;
  reading.kv_head = kv_head;
  return reading;
}

void keys_as_values(const QueryPlace& place, AttentionRowInput& row) {
  if (place.scenario.head_size == place.scenario.value_head_size) row.values = row.keys;
}

/// Keys of KV head 0 beside the head's own values.
void keys_of_first_head(const QueryPlace& place, AttentionRowInput& row) {
  const Scenario& s = place.scenario;
  const std::int64_t lanes = place.head / (s.query_heads / s.kv_heads) * s.head_size;
  for (const double*& key : row.keys) key -= lanes;
  for (const double*& doubt : row.key_doubts) doubt = doubt ? doubt - lanes : doubt;
}

void values_one_late(const QueryPlace&, AttentionRowInput& row) {
  if (row.values.size() < 2) return;
  std::rotate(row.values.begin(), row.values.end() - 1, row.values.end());
  row.values.front() = row.values[1];
}

void newest_value_stale(const QueryPlace&, AttentionRowInput& row) {
  if (row.values.size() >= 2) row.values.back() = row.values[row.values.size() - 2];
}

bool grouped(const Scenario& s) { return s.kv_heads > 1 && s.query_heads > s.kv_heads; }
bool several_heads(const Scenario& s) { return s.kv_heads > 1; }
bool evicts(const Scenario& s) { return s.cache.layout == LayoutKind::block; }
bool same_sizes(const Scenario& s) { return s.head_size == s.value_head_size; }
bool rolls_back(const Scenario& s) {
  return std::any_of(s.steps.begin(), s.steps.end(),
                     [](const Step& step) { return std::holds_alternative<Rollback>(step); });
}

}  // namespace

std::vector<WrongModel> wrong_rows() {
  return {
      {"rows.stale_after_rollback", "reads the tokens that a rollback dropped", rolls_back,
       holds(stale)},
      {"rows.min_overflow", "keeps min(T, C) rows and reads them as if blocks had been evicted",
       evicts, holds(min_overflow)},
      {"rows.not_moved", "reads rows where they stood before the eviction", evicts,
       holds(not_moved)},
      {"rows.one_late", "writes new tokens one row too far", always, holds(one_row_late)},
      {"rows.over_the_newest", "writes new tokens over the newest row of the past", always,
       holds(over_the_newest)},
      {"rows.of_first_entry", "reads the cache of entry 0 for every entry", batched,
       holds(of_first_entry)},
      {"rows.of_next_entry", "reads the cache of the next entry", batched, holds(of_next_entry)},
      {"heads.modulo", "maps query heads to KV heads by remainder in place of quotient", grouped,
       maps(modulo)},
      {"heads.first", "reads KV head 0 for every query head", several_heads, maps(first_head)},
      {"heads.reversed", "maps query heads to KV heads from the end", several_heads,
       maps(reversed)},
      {"rows.keys_as_values", "reads keys for values", same_sizes, distorts(keys_as_values)},
      {"rows.values_one_late", "pairs each key with the value before it", always,
       distorts(values_one_late)},
      {"rows.newest_value_stale", "reads the value before the newest twice, the newest never",
       always, distorts(newest_value_stale)},
      {"rows.step_reversed", "writes the tokens of a step from the last to the first", always,
       holds(step_reversed)},
      {"rows.ring", "wraps new tokens to the first rows and reads them as if blocks were evicted",
       evicts, holds(ring)},
      {"heads.keys_of_first", "reads the keys of KV head 0 for every head", several_heads,
       distorts(keys_of_first_head)},
  };
}

}  // namespace kvcheck::model
