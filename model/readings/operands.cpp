// Wrong rotary positions and pairs, norm and quantisation left out.
#include "model/readings/seen.h"
#include "model/rotary.h"
#include "model/wrong_models.h"

namespace kvcheck::model {
namespace {

using namespace readings;

const EntryStep& around(const Timeline& timeline, std::size_t step, std::int64_t entry) {
  return timeline.steps()[step].entries[static_cast<std::size_t>(entry)];
}

/// Row of the buffer in which the token stands after its step.
std::int64_t by_row(const Scenario&, const Timeline& timeline, std::size_t step, std::int64_t entry,
                    std::int64_t token, bool) {
  const EntryStep& state = around(timeline, step, entry);
  return std::max<std::int64_t>(0, state.origin.value + token - state.first_position.value);
}

std::int64_t by_step(const Scenario&, const Timeline&, std::size_t, std::int64_t,
                     std::int64_t token, bool) {
  return token;
}

std::int64_t one_late(const Scenario& scenario, const Timeline& timeline, std::size_t step,
                      std::int64_t entry, std::int64_t token, bool key) {
  return rotary_position(scenario, timeline, step, entry, token) + (key ? 0 : 1);
}

std::int64_t by_longest(const Scenario&, const Timeline& timeline, std::size_t step, std::int64_t,
                        std::int64_t token, bool) {
  std::int64_t origin = 0;
  for (const EntryStep& entry : timeline.steps()[step].entries) {
    origin = std::max(origin, entry.origin.value);
  }
  return origin + token;
}

std::int64_t ids_ignored(const Scenario&, const Timeline& timeline, std::size_t step,
                         std::int64_t entry, std::int64_t token, bool) {
  return around(timeline, step, entry).origin.value + token;
}

/// Each token by its own element of position_ids, as one would expect.
std::int64_t ids_in_rows(const Scenario& scenario, const Timeline& timeline, std::size_t step,
                         std::int64_t entry, std::int64_t token, bool) {
  return position_ids(scenario, timeline,
                      step)[static_cast<std::size_t>(entry)][static_cast<std::size_t>(token)];
}

std::int64_t never(const Scenario&, const Timeline&, std::size_t, std::int64_t, std::int64_t,
                   bool) {
  return 0;
}

std::int64_t keys_alone(const Scenario& scenario, const Timeline& timeline, std::size_t step,
                        std::int64_t entry, std::int64_t token, bool key) {
  return key ? rotary_position(scenario, timeline, step, entry, token) : 0;
}

std::int64_t queries_at_first(const Scenario& scenario, const Timeline& timeline, std::size_t step,
                              std::int64_t entry, std::int64_t token, bool key) {
  return rotary_position(scenario, timeline, step, entry, key ? token : 0);
}

Reading turns(std::int64_t (*position)(const Scenario&, const Timeline&, std::size_t, std::int64_t,
                                       std::int64_t, bool)) {
  Reading reading;
  reading.rotary_position = position;
  return reading;
}

Reading other_pairs() {
  Reading reading;
  reading.other_pairs = true;
  return reading;
}

Reading without_norm() {
  Reading reading;
  reading.without_norm = true;
  return reading;
}

Reading without_quantisation() {
  Reading reading;
  reading.without_quantisation = true;
  return reading;
}

bool rotary(const Scenario& s) { return s.rotary.has_value(); }
bool rotary_evicting(const Scenario& s) { return rotary(s) && s.cache.layout == LayoutKind::block; }
bool rotary_batch(const Scenario& s) { return rotary(s) && s.batch > 1; }
bool ids(const Scenario& s) { return rotary(s) && s.rotary->position_ids; }
bool wide_ids(const Scenario& s) {
  return ids(s) &&
         (s.rotary->position_ids->extra_columns > 0 || s.rotary->position_ids->stride != 1);
}
bool norm(const Scenario& s) { return s.qk_norm.has_value(); }
bool quantised(const Scenario& s) { return s.cache.quantisation.kind != QuantisationKind::none; }

}  // namespace

std::vector<WrongModel> wrong_operands() {
  return {
      {"rotary.by_row", "turns by row of the buffer, not by position", rotary_evicting,
       turns(by_row)},
      {"rotary.by_step", "starts to count at 0 in every step", rotary, turns(by_step)},
      {"rotary.query_one_late", "turns queries one position further", rotary, turns(one_late)},
      {"rotary.by_longest", "turns every entry by the positions of the longest", rotary_batch,
       turns(by_longest)},
      {"rotary.ignored", "leaves the rotary embedding out", rotary, turns(never)},
      {"rotary.keys_alone", "turns keys and not queries", rotary, turns(keys_alone)},
      {"rotary.other_pairs", "pairs lanes the other way (interleaved for halves, or the reverse)",
       rotary, other_pairs()},
      {"rotary.ids_ignored", "turns by its own count in place of position_ids", ids,
       turns(ids_ignored)},
      {"rotary.ids_in_rows", "reads position_ids by row and token, not as the operator does",
       wide_ids, turns(ids_in_rows)},
      {"norm.ignored", "leaves the norm of queries and keys out", norm, without_norm()},
      {"quantisation.skipped", "attends to keys and values as given, not as the cache stores them",
       quantised, without_quantisation()},
      {"rotary.queries_at_first", "turns all queries of a step by the position of the first",
       rotary, turns(queries_at_first)},
  };
}

}  // namespace kvcheck::model
