// Two runs side by side.
#include "properties/compare_runs.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "properties/row_content.h"

namespace kvcheck::properties {
namespace {

struct Place {
  std::size_t step;
  std::int64_t entry, query;
};
/// entry, position, generation, length seen (-1 where every token asks its own query)
using QueryKey = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>;

std::map<QueryKey, Place> queries_of(const OtherRun& run) {
  std::map<QueryKey, Place> places;
  for (std::size_t i = 0; i < run.execution.steps.size(); ++i) {
    const StepAnswer& answer = run.execution.steps[i];
    const auto* append = std::get_if<model::Append>(&run.scenario.steps[i]);
    if (!append || answer.status != StepAnswer::Status::ok || !answer.result.output) continue;
    for (std::int64_t b = 0; b < run.scenario.batch; ++b) {
      const auto& state = run.timeline.steps()[i].entries[static_cast<std::size_t>(b)];
      for (std::int64_t q = 0; q < state.queries; ++q) {
        const std::int64_t seen = append->queries == append->tokens ? -1 : state.length;
        places[{b + run.first_entry, state.origin.value + q, append->generation, seen}] = {i, b, q};
      }
    }
  }
  return places;
}

/// Same value, or both NaN; -0 and +0 differ in bits and count as different only there.
bool same_bits(double a, double b) {
  return a == b ? std::signbit(a) == std::signbit(b) : std::isnan(a) && std::isnan(b);
}

std::optional<Difference> compare_query(Case& main, const Place& mine, const OtherRun& other,
                                        const Place& theirs, bool bitwise) {
  const auto& s = main.scenario();
  const auto& a = *main.execution().steps[mine.step].result.output;
  const auto& b = *other.execution.steps[theirs.step].result.output;
  for (std::int64_t h = 0; h < s.query_heads; ++h) {
    for (std::int64_t l = 0; l < s.value_head_size; ++l) {
      const double x = output_at(a, mine.entry, mine.query, h, l);
      const double y = output_at(b, theirs.entry, theirs.query, h, l);
      if (same_bits(x, y)) continue;
      double ratio = std::numeric_limits<double>::infinity();
      if (!bitwise && std::isfinite(x) && std::isfinite(y)) {
        const auto& expected = main.oracle().expected(mine.step);
        const auto at = static_cast<std::size_t>(
            ((mine.entry * expected.queries + mine.query) * s.query_heads + h) * s.value_head_size +
            l);
        ratio = std::abs(x - y) / (2 * expected.bound[at].total());
        if (ratio <= 1) continue;
      }
      const auto& state =
          main.timeline().steps()[mine.step].entries[static_cast<std::size_t>(mine.entry)];
      Difference difference;
      difference.ratio = ratio;
      difference.hint.step = static_cast<std::int64_t>(mine.step);
      difference.hint.entry = mine.entry;
      difference.hint.query_head = h;
      difference.sentence = fmt::format(
          "query at position {} of batch entry {}, head {}, lane {}: {:.9g} (step {}: {}) against "
          "{:.9g} (step {}: {}){}",
          state.origin.value + mine.query, mine.entry, h, l, x, mine.step,
          model::describe(s.steps[mine.step]), y, theirs.step,
          model::describe(other.scenario.steps[theirs.step]),
          bitwise ? ", where equal bits are promised" : "");
      return difference;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Difference> compare_outputs(Case& main, const OtherRun& other, bool bitwise,
                                          std::size_t first_step) {
  const auto theirs = queries_of(other);
  const OtherRun self{main.scenario(), main.timeline(), main.execution()};
  for (const auto& [key, place] : queries_of(self)) {
    const auto it = theirs.find(key);
    if (it == theirs.end() || place.step < first_step) continue;
    if (auto difference = compare_query(main, place, other, it->second, bitwise)) return difference;
  }
  return std::nullopt;
}

std::int64_t shared_queries(Case& main, const OtherRun& other) {
  const auto theirs = queries_of(other);
  const OtherRun self{main.scenario(), main.timeline(), main.execution()};
  const auto mine = queries_of(self);
  return std::count_if(mine.begin(), mine.end(),
                       [&](const auto& item) { return theirs.count(item.first) > 0; });
}

std::optional<Difference> compare_rows(Case& main, const OtherRun& other, std::size_t step,
                                       std::size_t other_step, bool bitwise) {
  const auto& a = main.execution().steps[step].result.rows;
  const auto& b = other.execution.steps[other_step].result.rows;
  if (!a || !b) return std::nullopt;
  std::optional<RowContent> content;
  const auto both_hold = [&](std::int64_t e, std::int64_t entry, std::int64_t head,
                             std::int64_t row, model::Position position) {
    if (bitwise) return false;
    if (!content) content.emplace(main.scenario(), main.timeline(), main.fill(), main.roundoff());
    if (!content->has_ranges()) return false;
    const auto token = content->held(step, entry, position);
    return content->match(*a, head, row, token).both() &&
           content->match_in(*b, e, head, row, token).both();
  };
  for (std::int64_t e = 0; e < other.scenario.batch; ++e) {
    const std::int64_t entry = e + other.first_entry;
    const auto& state = main.timeline().steps()[step].entries[static_cast<std::size_t>(entry)];
    const std::int64_t rows = std::min({state.resident, a->key.shape[2], b->key.shape[2]});
    for (std::int64_t h = 0; h < main.scenario().kv_heads; ++h) {
      for (std::int64_t r = 0; r < rows; ++r) {
        const bool key =
            std::ranges::equal(row_bytes(a->key, entry, h, r), row_bytes(b->key, e, h, r));
        const bool value =
            std::ranges::equal(row_bytes(a->value, entry, h, r), row_bytes(b->value, e, h, r));
        if (key && value) continue;
        const std::int64_t position = state.first_position.value + r;
        if (both_hold(e, entry, h, r, {position})) continue;
        Difference difference;
        difference.ratio = std::numeric_limits<double>::infinity();
        difference.hint.step = static_cast<std::int64_t>(step);
        difference.hint.entry = entry;
        difference.sentence =
            fmt::format("{} of row {} (position {}) of batch entry {}, KV head {} differs at T={}",
                        key ? "value" : "key", r, position, entry, h, state.length);
        return difference;
      }
    }
  }
  return std::nullopt;
}

}  // namespace kvcheck::properties
