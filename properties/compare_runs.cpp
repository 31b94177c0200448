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

/// The bytes of `count` neighbouring elements.
std::span<const std::byte> elements(const kernels::Tensor& tensor, std::int64_t first,
                                    std::int64_t count) {
  const std::size_t width = kernels::element_bytes(tensor.type);
  return std::span(tensor.bytes)
      .subspan(static_cast<std::size_t>(first) * width, static_cast<std::size_t>(count) * width);
}

const model::EntryStep& state_at(const model::Timeline& timeline, const Place& place) {
  return timeline.steps()[place.step].entries[static_cast<std::size_t>(place.entry)];
}

/// One query as both runs answered it.
class QueryPair {
 public:
  QueryPair(Case& main, const Place& mine, const OtherRun& other, const Place& theirs, bool bitwise)
      : main_(main), mine_(mine), other_(other), theirs_(theirs), bitwise_(bitwise) {}

  std::optional<Difference> compare() const {
    if (auto difference = compare_output()) return difference;
    return bitwise_ ? compare_qk() : std::nullopt;
  }

 private:
  const kernels::StepResult& my_result() const {
    return main_.execution().steps[mine_.step].result;
  }
  const kernels::StepResult& their_result() const {
    return other_.execution.steps[theirs_.step].result;
  }

  std::optional<Difference> compare_output() const {
    const auto& s = main_.scenario();
    const auto& a = *my_result().output;
    const auto& b = *their_result().output;
    const std::int64_t row = s.query_heads * s.value_head_size;
    const std::int64_t first_a = (mine_.entry * a.shape[1] + mine_.query) * row;
    const std::int64_t first_b = (theirs_.entry * b.shape[1] + theirs_.query) * row;
    if (std::ranges::equal(elements(a, first_a, row), elements(b, first_b, row))) return {};
    for (std::int64_t i = 0; i < row; ++i) {
      if (std::ranges::equal(elements(a, first_a + i, 1), elements(b, first_b + i, 1))) continue;
      const double x = element(a, first_a + i), y = element(b, first_b + i);
      const std::int64_t head = i / s.value_head_size, lane = i % s.value_head_size;
      const double ratio =
          bitwise_ ? std::numeric_limits<double>::infinity() : ratio_to_bound(x, y, head, lane);
      if (ratio <= 1) continue;
      return difference(ratio, head, fmt::format("lane {}", lane), x, y);
    }
    return std::nullopt;
  }

  /// |x - y| over twice the bound; infinite where one of them is not finite.
  double ratio_to_bound(double x, double y, std::int64_t head, std::int64_t lane) const {
    if (x == y || (std::isnan(x) && std::isnan(y))) return 0;
    if (!std::isfinite(x) || !std::isfinite(y)) return std::numeric_limits<double>::infinity();
    const auto& s = main_.scenario();
    const auto& expected = main_.oracle().expected(mine_.step);
    const auto at = static_cast<std::size_t>(
        ((mine_.entry * expected.queries + mine_.query) * s.query_heads + head) *
            s.value_head_size +
        lane);
    return std::abs(x - y) / (2 * expected.bound[at].total());
  }

  /// Columns are positions, of which both runs show those that both sequences have.
  std::optional<Difference> compare_qk() const {
    if (!my_result().qk || !their_result().qk) return std::nullopt;
    const auto& a = *my_result().qk;
    const auto& b = *their_result().qk;
    const std::int64_t columns =
        std::min({state_at(main_.timeline(), mine_).length,
                  state_at(other_.timeline, theirs_).length, a.shape[3], b.shape[3]});
    for (std::int64_t head = 0; head < main_.scenario().query_heads; ++head) {
      const auto first = [&](const kernels::Tensor& qk, const Place& place) {
        return ((place.entry * qk.shape[1] + head) * qk.shape[2] + place.query) * qk.shape[3];
      };
      for (std::int64_t key = 0; key < columns; ++key) {
        const std::int64_t at_a = first(a, mine_) + key, at_b = first(b, theirs_) + key;
        if (std::ranges::equal(elements(a, at_a, 1), elements(b, at_b, 1))) continue;
        return difference(std::numeric_limits<double>::infinity(), head,
                          fmt::format("qk_output of key {}", key), element(a, at_a),
                          element(b, at_b));
      }
    }
    return std::nullopt;
  }

  Difference difference(double ratio, std::int64_t head, const std::string& what, double x,
                        double y) const {
    Difference result;
    result.ratio = ratio;
    result.hint.step = static_cast<std::int64_t>(mine_.step);
    result.hint.entry = mine_.entry;
    result.hint.query_head = head;
    result.sentence = fmt::format(
        "query at position {} of batch entry {}, head {}, {}: {:.9g} (step {}: {}) against {:.9g} "
        "(step {}: {}){}",
        state_at(main_.timeline(), mine_).origin.value + mine_.query, mine_.entry, head, what, x,
        mine_.step, model::describe(main_.scenario().steps[mine_.step]), y, theirs_.step,
        model::describe(other_.scenario.steps[theirs_.step]),
        bitwise_ ? ", where equal bits are promised" : "");
    return result;
  }

  Case& main_;
  const Place& mine_;
  const OtherRun& other_;
  const Place& theirs_;
  bool bitwise_;
};

}  // namespace

std::optional<Difference> compare_outputs(Case& main, const OtherRun& other, bool bitwise,
                                          std::size_t first_step) {
  const auto theirs = queries_of(other);
  const OtherRun self{main.scenario(), main.timeline(), main.execution()};
  for (const auto& [key, place] : queries_of(self)) {
    const auto it = theirs.find(key);
    if (it == theirs.end() || place.step < first_step) continue;
    const QueryPair pair(main, place, other, it->second, bitwise);
    if (auto difference = pair.compare()) return difference;
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
  const auto both_hold = [&](std::int64_t entry, std::int64_t row, std::int64_t their_entry,
                             std::int64_t their_row, std::int64_t head, model::Position position) {
    if (bitwise) return false;
    if (!content) content.emplace(main.scenario(), main.timeline(), main.fill(), main.roundoff());
    if (!content->has_ranges()) return false;
    const auto token = content->held(step, entry, position);
    return content->match(*a, head, row, token).both() &&
           content->match_in(*b, their_entry, head, their_row, token).both();
  };
  for (std::int64_t e = 0; e < other.scenario.batch; ++e) {
    const std::int64_t entry = e + other.first_entry;
    const auto& state = state_at(main.timeline(), {step, entry, 0});
    const auto& their = state_at(other.timeline, {other_step, e, 0});
    const std::int64_t first = state.first_position.value;
    const std::int64_t their_first = their.first_position.value;
    const std::int64_t end = std::min({first + std::min(state.resident, a->key.shape[2]),
                                       their_first + std::min(their.resident, b->key.shape[2])});
    for (std::int64_t h = 0; h < main.scenario().kv_heads; ++h) {
      for (std::int64_t p = std::max(first, their_first); p < end; ++p) {
        const std::int64_t r = p - first, their_r = p - their_first;
        const bool key =
            std::ranges::equal(row_bytes(a->key, entry, h, r), row_bytes(b->key, e, h, their_r));
        const bool value = std::ranges::equal(row_bytes(a->value, entry, h, r),
                                              row_bytes(b->value, e, h, their_r));
        if (key && value) continue;
        if (both_hold(entry, r, e, their_r, h, {p})) continue;
        Difference difference;
        difference.ratio = std::numeric_limits<double>::infinity();
        difference.hint.step = static_cast<std::int64_t>(step);
        difference.hint.entry = entry;
        difference.sentence =
            fmt::format("{} of row {} (position {}) of batch entry {}, KV head {} differs at T={}",
                        key ? "value" : "key", r, p, entry, h, state.length);
        return difference;
      }
    }
  }
  return std::nullopt;
}

}  // namespace kvcheck::properties
