// Wrong windows.
#include "model/readings/seen.h"
#include "model/wrong_models.h"

namespace kvcheck::model {
namespace {

using namespace readings;

std::int64_t width(const QueryPlace& place) { return place.scenario.cache.window_size.value_or(0); }

std::vector<Position> from(const QueryPlace& place, std::int64_t first) {
  Rule rule = right_rule(place);
  if (windowed(place.scenario)) rule.first = std::max<std::int64_t>(0, first);
  return seen(place, rule);
}

std::vector<Position> one_more(const QueryPlace& place) {
  return from(place, place.position().value - width(place));
}

std::vector<Position> one_less(const QueryPlace& place) {
  return from(place, place.position().value - width(place) + 2);
}

std::vector<Position> besides_self(const QueryPlace& place) {
  Rule rule = right_rule(place);
  if (!windowed(place.scenario)) return seen(place, rule);
  rule.first = std::max<std::int64_t>(0, place.position().value - width(place));
  rule.last = std::min(rule.last, place.position().value - 1);
  return seen(place, rule);
}

std::vector<Position> ignored(const QueryPlace& place) { return from(place, 0); }

std::vector<Position> of_capacity(const QueryPlace& place) {
  return from(place, place.position().value - place.timeline.buffer_rows() + 1);
}

std::vector<Position> by_row(const QueryPlace& place) {
  const std::int64_t evicted = place.around().first_position.value;
  return from(place, std::max(evicted, right_rule(place).first + evicted));
}

std::vector<Position> of_first_query(const QueryPlace& place) {
  return from(place, place.around().origin.value - width(place) + 1);
}

std::vector<Position> of_last_query(const QueryPlace& place) {
  const EntryStep& around = place.around();
  return from(place, around.origin.value + around.queries - width(place));
}

std::vector<Position> in_blocks(const QueryPlace& place) {
  const std::int64_t p = place.position().value;
  return width(place) == 0 ? seen(place, right_rule(place)) : from(place, p - p % width(place));
}

std::vector<Position> from_the_end(const QueryPlace& place) {
  return from(place, place.around().length - width(place));
}

std::vector<Position> not_for_one_query(const QueryPlace& place) {
  return place.around().queries == 1 ? ignored(place) : seen(place, right_rule(place));
}

std::vector<Position> one_more_for_many(const QueryPlace& place) {
  return place.around().queries > 1 ? one_more(place) : seen(place, right_rule(place));
}

std::vector<Position> right_ignored(const QueryPlace& place) {
  Rule rule = right_rule(place);
  rule.last = place.around().length - 1;
  if (place.scenario.causal) rule.last = std::min(rule.last, place.position().value);
  return seen(place, rule);
}

std::vector<Position> right_one_more(const QueryPlace& place) {
  Rule rule = right_rule(place);
  rule.last = std::min(place.around().length - 1, rule.last + 1);
  if (place.scenario.causal) rule.last = std::min(rule.last, place.position().value);
  return seen(place, rule);
}

/// Rows that the step itself evicts are gone before its first queries have read them.
std::vector<Position> evicted_first(const QueryPlace& place) {
  Rule rule = right_rule(place);
  if (place.around().staged) rule.first = std::max(rule.first, place.around().first_position.value);
  return seen(place, rule);
}

bool has_window(const Scenario& s) { return s.cache.window_size.value_or(0) > 0; }
bool evicts(const Scenario& s) { return windowed(s) && s.cache.layout == LayoutKind::block; }
bool has_right_window(const Scenario& s) { return s.right_window_size && !s.causal; }

}  // namespace

std::vector<WrongModel> wrong_windows() {
  return {
      {"window.one_more", "shows W + 1 keys", windowed, sees(one_more)},
      {"window.one_less", "shows W - 1 keys", has_window, sees(one_less)},
      {"window.besides_self", "shows the W keys before a query and not its own", windowed,
       sees(besides_self)},
      {"window.ignored", "leaves the window out", windowed, sees(ignored)},
      {"window.of_capacity", "takes the capacity for the window", windowed, sees(of_capacity)},
      {"window.by_row", "counts the window in rows, although older ones were evicted", evicts,
       sees(by_row)},
      {"window.of_first_query", "gives all queries of a step the window of its first one", windowed,
       sees(of_first_query)},
      {"window.of_last_query", "gives all queries of a step the window of its last one", windowed,
       sees(of_last_query)},
      {"window.in_blocks", "cuts the sequence into blocks of W in place of a sliding window",
       has_window, sees(in_blocks)},
      {"window.from_the_end", "counts the window from the newest key, not from the query", windowed,
       sees(from_the_end)},
      {"window.not_for_one_query", "leaves the window out where a step asks one query", windowed,
       sees(not_for_one_query)},
      {"window.evicted_before_read", "evicts in place where the step needs a staging buffer",
       evicts, sees(evicted_first)},
      {"right_window.ignored", "leaves the right window out", has_right_window,
       sees(right_ignored)},
      {"right_window.one_more", "shows one key more to the right", has_right_window,
       sees(right_one_more)},
      {"window.one_more_for_many", "shows W + 1 keys where a step asks several queries", windowed,
       sees(one_more_for_many)},
  };
}

}  // namespace kvcheck::model
