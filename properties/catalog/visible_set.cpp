// mask.visible_set: each query attends exactly the keys that the contract lets it see.
#include <fmt/format.h>

#include "model/visibility.h"
#include "properties/catalog.h"
#include "properties/convert.h"
#include "properties/digit_check.h"
#include "properties/position_text.h"
#include "properties/read_back.h"

namespace kvcheck::properties {
namespace {

/// Of a MeasuredQuery or a DigitMismatch.
template <class Place>
shrinkers::Hint hint_of(const Place& place) {
  shrinkers::Hint hint;
  hint.step = static_cast<std::int64_t>(place.step);
  hint.entry = place.entry;
  hint.query_head = place.head;
  return hint;
}

/// More launches than this are made only where a few at the edges show nothing.
constexpr std::int64_t kFewLaunches = 16;

/// More launches than this are never made: each loads the whole context.
constexpr std::int64_t kMostLaunches = 256;

/// `measured_where` says which positions were read back, where not all were.
Judgement contradiction(const Case& c, const MeasuredQuery& query,
                        const std::string& measured_where = "") {
  const auto leaked = difference(query.observed, query.expected);
  const auto missing = difference(query.expected, query.observed);
  const std::string where = fmt::format(
      "step {} ({}), batch entry {}, head {}: the query at position {} sees {}{}; the contract "
      "says {}",
      query.step, model::describe(c.scenario().steps[query.step]), query.entry, query.head,
      query.position.value, positions_text(query.observed), measured_where,
      positions_text(query.expected));
  if (!leaked.empty()) {
    return Judgement::failed(
        Kind::leak,
        fmt::format("{}: {} {} leak{}{}", where, leaked.size() > 1 ? "keys" : "key",
                    positions_text(leaked), leaked.size() > 1 ? "" : "s",
                    missing.empty() ? "" : " and " + positions_text(missing) + " is missing"),
        hint_of(query));
  }
  return Judgement::failed(Kind::missing_key,
                           fmt::format("{}: {} missing", where, positions_text(missing)),
                           hint_of(query));
}

/// The target's own mask, by buffer row, as positions.
Judgement judge_given_mask(Case& c) {
  const Execution& execution = c.execution();
  std::int64_t compared = 0;
  for (std::size_t i = 0; i < execution.steps.size(); ++i) {
    const auto& visible = execution.steps[i].result.visible;
    if (!visible || !c.timeline().steps()[i].defined) continue;
    for (std::int64_t b = 0; b < c.scenario().batch; ++b) {
      const auto& state = c.timeline().steps()[i].entries[static_cast<std::size_t>(b)];
      for (std::int64_t q = 0; q < state.queries; ++q, ++compared) {
        MeasuredQuery query;
        query.step = i;
        query.entry = b;
        query.query = q;
        query.position = {state.origin.value + q};
        query.expected = model::visible_positions(c.scenario(), c.timeline(), i, b, 0, q);
        query.measured = true;
        for (std::int64_t r = 0; r < visible->shape[2]; ++r) {
          if (element(*visible, (b * visible->shape[1] + q) * visible->shape[2] + r) != 0) {
            query.observed.push_back({state.first_position.value + r});
          }
        }
        if (!query.agrees()) return contradiction(c, query);
      }
    }
  }
  if (!execution.complete) return Judgement::skipped(broke_off(c.scenario(), execution));
  return compared > 0 ? Judgement{} : Judgement::skipped("the scenario asks no query");
}

/// A mismatch of which the edges show nothing, where the context is too long to read it all back.
Judgement unexplained_mismatch(const Case& c, const DigitMismatch& place) {
  return Judgement::failed(
      Kind::over_bound,
      fmt::format("step {} ({}), batch entry {}, head {}, query {}: with logits that are all 0 the "
                  "output is not the mean of the values that the query sees; the keys around its "
                  "edges are right",
                  place.step, model::describe(c.scenario().steps[place.step]), place.entry,
                  place.head, place.query),
      hint_of(place));
}

Judgement judge_by_launches(Case& c) {
  const DigitCheck& check = c.digits().check();
  if (!check.problem.empty()) return Judgement::skipped(check.problem);
  if (check.queries == 0) return Judgement::skipped("the scenario asks no query");
  if (!check.mismatch && !check.blind) return {};
  const std::int64_t launches = launches_to_measure(c.scenario());
  // With one lane, a launch for each key sees what digits do not.
  const bool sees_more = c.scenario().value_head_size == 1 && launches <= kMostLaunches;
  if (!check.mismatch && !sees_more) {
    return Judgement::blind("one key more or less could hide within the error bound here");
  }
  if (check.mismatch && launches > kFewLaunches) {
    const MeasuredQuery edges = measure_edges(c.target(), c.scenario(), *check.mismatch);
    if (edges.measured && !edges.agrees()) {
      return contradiction(c, edges, " of the keys around its edges");
    }
  }
  if (launches > kMostLaunches) return unexplained_mismatch(c, *check.mismatch);
  const ReadBack read_back = measure_visibility(c.target(), c.scenario());
  if (read_back.queries.empty()) return Judgement::skipped("the scenario asks no query");
  const MeasuredQuery* unread = nullptr;
  for (const MeasuredQuery& query : read_back.queries) {
    if (!query.measured)
      unread = &query;
    else if (!query.agrees())
      return contradiction(c, query);
  }
  if (!read_back.problem.empty()) return Judgement::skipped(read_back.problem);
  if (unread) {
    return Judgement::failed(
        Kind::not_finite,
        fmt::format("step {}, batch entry {}, head {}: the query at position {} has no finite "
                    "output although all logits are 0",
                    unread->step, unread->entry, unread->head, unread->position.value),
        hint_of(*unread));
  }
  if (!check.mismatch) return {};
  return Judgement::failed(
      Kind::over_bound,
      "every query attends the right keys, but with weights that are not those of "
      "logits that are all 0",
      hint_of(*check.mismatch));
}

std::string inapplicable(const model::Scenario& scenario, const kernels::Capabilities& target) {
  if (target.visible) return "";
  return target.outputs ? fixed_tensors_reason(scenario)
                        : "the target shows neither outputs nor a mask";
}

}  // namespace

Property visible_set_property() {
  return {"mask.visible_set",
          "Every query attends exactly the keys that the contract lets it see, read back from the "
          "target's outputs with zero logits and position-coded values, and compared as sets.",
          "mask origin, window edges, shortcuts for one query, lengths mixed up, stale rows",
          inapplicable, [](Case& c) {
            return c.capabilities().visible ? judge_given_mask(c) : judge_by_launches(c);
          }};
}

}  // namespace kvcheck::properties
