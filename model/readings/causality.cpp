// Wrong origins of the causal rule, and wrong lengths.
#include "model/readings/seen.h"
#include "model/wrong_models.h"

namespace kvcheck::model {
namespace {

using namespace readings;

std::vector<Position> top_left(const QueryPlace& place) {
  return seen(place, rule_at(place, place.query));
}

std::vector<Position> bottom_right(const QueryPlace& place) {
  const EntryStep& around = place.around();
  return seen(place, rule_at(place, around.length - around.queries + place.query));
}

std::vector<Position> by_capacity(const QueryPlace& place) {
  const std::int64_t rows = place.timeline.buffer_rows();
  return seen(place, rule_at(place, rows - place.around().queries + place.query));
}

std::vector<Position> by_longest(const QueryPlace& place) {
  const EntryStep& around = place.around();
  return seen(place, rule_at(place, longest(place) - around.queries + place.query));
}

std::vector<Position> clamped(const QueryPlace& place) {
  const std::int64_t origin = std::max<std::int64_t>(0, place.around().origin.value);
  return seen(place, rule_at(place, origin + place.query));
}

std::vector<Position> one_later(const QueryPlace& place) {
  Rule rule = right_rule(place);
  rule.last = std::min(place.around().length - 1, rule.last + 1);
  return seen(place, rule);
}

std::vector<Position> without_self(const QueryPlace& place) {
  Rule rule = right_rule(place);
  rule.last = std::min(rule.last, place.position().value - 1);
  return seen(place, rule);
}

std::vector<Position> skipped(const QueryPlace& place) {
  Rule rule = right_rule(place);
  rule.last = place.around().length - 1;
  if (place.scenario.right_window_size) {  // Another rule, which still holds.
    rule.last = std::min(rule.last, place.position().value + *place.scenario.right_window_size);
  }
  return seen(place, rule);
}

std::vector<Position> skipped_for_one_query(const QueryPlace& place) {
  return place.around().queries == 1 ? skipped(place) : seen(place, right_rule(place));
}

std::vector<Position> last_query(const QueryPlace& place) {
  const EntryStep& around = place.around();
  return seen(place, {right_rule(place).first,
                      rule_at(place, around.origin.value + around.queries - 1).last});
}

std::vector<Position> first_query(const QueryPlace& place) {
  return seen(place, rule_at(place, place.around().origin.value));
}

/// Another back end where a step asks more queries than there are keys.
std::vector<Position> top_left_where_more_queries(const QueryPlace& place) {
  const EntryStep& around = place.around();
  return around.queries > around.length ? top_left(place) : seen(place, right_rule(place));
}

std::vector<Position> length_one_short(const QueryPlace& place) {
  Rule rule = right_rule(place);
  rule.last = std::min(rule.last, place.around().length - 2);
  return seen(place, rule);
}

std::vector<Position> length_of_capacity(const QueryPlace& place) {
  Rule rule = right_rule(place);
  const std::int64_t rows = place.timeline.buffer_rows();
  rule.last = place.scenario.causal ? rule.last : rows - 1;
  return seen(place, rule);
}

std::vector<Position> padding_seen(const QueryPlace& place) {
  Rule rule = right_rule(place);
  if (rule.last >= rule.first) ++rule.last;
  return seen(place, rule);
}

std::vector<Position> length_of_longest(const QueryPlace& place) {
  Rule rule = right_rule(place);
  if (rule.last == place.around().length - 1) rule.last = longest(place) - 1;
  return seen(place, rule);
}

std::vector<Position> past_forgotten(const QueryPlace& place) {
  Rule rule = right_rule(place);
  rule.first = std::max(rule.first, place.around().past);
  return seen(place, rule);
}

std::vector<Position> oldest_lost(const QueryPlace& place) {
  Rule rule = right_rule(place);
  if (rule.last > rule.first) ++rule.first;
  return seen(place, rule);
}

/// Every position that it sees, and those beyond, must lead to a row.
Reading sees_rows(std::vector<Position> (*visible)(const QueryPlace&)) {
  Reading reading = sees(visible);
  reading.held = [](const QueryPlace& place, Position position) {
    return held_at(place, place.entry, position.value);
  };
  return reading;
}

/// Whether the place of a query in the sequence matters.
bool placed(const Scenario& s) { return s.causal || windowed(s) || s.right_window_size; }
bool placed_batch(const Scenario& s) { return placed(s) && s.batch > 1; }
bool placed_nonpad(const Scenario& s) { return s.nonpad_kv_seqlen && placed(s); }
bool open_buffer(const Scenario& s) { return s.nonpad_kv_seqlen && !s.causal; }

}  // namespace

std::vector<WrongModel> wrong_causality() {
  return {
      {"causal.top_left", "counts queries from position 0, as if there were no past", placed,
       sees(top_left)},
      {"causal.bottom_right", "counts queries from the end: the last one sees every key", placed,
       sees(bottom_right)},
      {"causal.by_capacity", "counts queries from the end of the buffer", placed_nonpad,
       sees(by_capacity)},
      {"causal.by_longest", "counts queries from the longest length of the batch", placed_batch,
       sees(by_longest)},
      {"causal.clamped", "moves queries before position 0 to it", placed_nonpad, sees(clamped)},
      {"causal.one_later", "shows each query the key after its own", causal, sees(one_later)},
      {"causal.without_self", "hides each query's own key", causal, sees(without_self)},
      {"causal.skipped", "leaves the causal rule out", causal, sees(skipped)},
      {"causal.skipped_for_one_query", "leaves the causal rule out where a step asks one query",
       causal, sees(skipped_for_one_query)},
      {"causal.of_last_query", "shows all queries of a step what its last one sees", causal,
       sees(last_query)},
      {"length.one_short", "takes the index of the newest key for the number of keys", always,
       sees(length_one_short)},
      {"length.of_capacity", "takes the capacity for the length", open_buffer,
       sees_rows(length_of_capacity)},
      {"length.one_row_of_padding", "reads one row beyond what a query may see", always,
       sees_rows(padding_seen)},
      {"length.of_longest", "takes the longest length of the batch for that of every entry",
       batched, sees_rows(length_of_longest)},
      {"length.past_forgotten", "attends to the tokens of the step alone", always,
       sees(past_forgotten)},
      {"length.oldest_lost", "loses the oldest key that it should see", always, sees(oldest_lost)},
      {"causal.of_first_query", "shows all queries of a step what its first one sees", placed,
       sees(first_query)},
      {"causal.top_left_where_more_queries",
       "counts queries from position 0 where there are more of them than keys", placed_nonpad,
       sees(top_left_where_more_queries)},
  };
}

}  // namespace kvcheck::model
