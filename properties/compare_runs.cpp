// Two runs side by side.
#include "properties/compare_runs.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include "properties/row_content.h"

namespace kvcheck::properties {
namespace {

bool same_bytes(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

struct Place {
  std::size_t step;
  std::int64_t entry, query;
};

/// The queries [first, end), by position, that an entry of the main run's numbering asks in a step.
struct QuerySpan {
  std::int64_t entry, generation, first, end;
  /// The length seen; -1 where every token asks its own query.
  std::int64_t seen;
  std::size_t step;
  /// How often the run asked them before, of the same cache.
  std::int64_t asked = 0;

  bool same_kind(const QuerySpan& other) const {
    return entry == other.entry && generation == other.generation && seen == other.seen;
  }
};

std::vector<QuerySpan> queries_of(const OtherRun& run) {
  std::vector<QuerySpan> spans;
  spans.reserve(run.execution.steps.size() * static_cast<std::size_t>(run.scenario.batch));
  for (std::size_t i = 0; i < run.execution.steps.size(); ++i) {
    const StepAnswer& answer = run.execution.steps[i];
    const auto* append = std::get_if<model::Append>(&run.scenario.steps[i]);
    if (!append || answer.status != StepAnswer::Status::ok || !answer.result.output) continue;
    const bool own = append->queries == append->tokens;
    for (std::int64_t b = 0; b < run.scenario.batch; ++b) {
      const auto& state = run.timeline.steps()[i].entries[static_cast<std::size_t>(b)];
      if (state.queries == 0) continue;
      const std::int64_t first = state.origin.value;
      spans.push_back({b + run.first_entry, append->generation, first, first + state.queries,
                       own ? -1 : state.length, i});
      QuerySpan& span = spans.back();
      for (std::size_t s = 0; !own && s + 1 < spans.size(); ++s) {
        const QuerySpan& before = spans[s];
        const bool overlaps = before.first < span.end && span.first < before.end;
        if (overlaps && before.same_kind(span)) ++span.asked;
      }
    }
  }
  return spans;
}

/// Calls visit(mine, theirs, count) for every stretch of queries that both runs answered, where the
/// two places are those of its first query. Ends when `visit` says false.
template <class Visit>
void visit_shared(Case& main, const OtherRun& other, std::size_t first_step, const Visit& visit) {
  const auto theirs = queries_of(other);
  for (const QuerySpan& a : queries_of({main.scenario(), main.timeline(), main.execution()})) {
    if (a.step < first_step) continue;
    for (const QuerySpan& b : theirs) {
      if (!a.same_kind(b) || a.asked != b.asked) continue;
      const std::int64_t first = std::max(a.first, b.first), end = std::min(a.end, b.end);
      if (first >= end) continue;
      const Place mine{a.step, a.entry, first - a.first};
      const Place their{b.step, b.entry - other.first_entry, first - b.first};
      if (!visit(mine, their, end - first)) return;
    }
  }
}

/// The bytes of `count` neighbouring elements.
std::span<const std::byte> elements(const kernels::Tensor& tensor, std::int64_t first,
                                    std::int64_t count) {
  const std::size_t width = kernels::element_bytes(tensor.type);
  return std::span(tensor.bytes)
      .subspan(static_cast<std::size_t>(first) * width, static_cast<std::size_t>(count) * width);
}

/// Neighbouring rows of one entry and KV head.
std::span<const std::byte> rows_bytes(const kernels::Tensor& rows, std::int64_t entry,
                                      std::int64_t head, std::int64_t first, std::int64_t count) {
  const std::int64_t row = (entry * rows.shape[1] + head) * rows.shape[2] + first;
  return elements(rows, row * rows.shape[3], count * rows.shape[3]);
}

const model::EntryStep& state_at(const model::Timeline& timeline, const Place& place) {
  return timeline.steps()[place.step].entries[static_cast<std::size_t>(place.entry)];
}

/// One query as both runs answered it.
class QueryPair {
 public:
  QueryPair(Case& main, const Place& mine, const OtherRun& other, const Place& theirs, bool bitwise)
      : main_(main), mine_(mine), other_(other), theirs_(theirs), bitwise_(bitwise) {}

  /// Whether nothing of this query and the next `count` - 1 differs; false is no answer.
  bool same_bits(std::int64_t count) const {
    if (bitwise_ && shows_qk()) return false;
    const std::int64_t row = main_.scenario().query_heads * main_.scenario().value_head_size;
    const auto bytes = [&](const kernels::Tensor& output, const Place& place) {
      return elements(output, (place.entry * output.shape[1] + place.query) * row, count * row);
    };
    return same_bytes(bytes(*my_result().output, mine_), bytes(*their_result().output, theirs_));
  }

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

  /// Whether both hand out the same intermediate.
  bool shows_qk() const {
    return my_result().qk && their_result().qk &&
           main_.scenario().qk_output == other_.scenario.qk_output;
  }

  std::optional<Difference> compare_output() const {
    const auto& s = main_.scenario();
    const auto& a = *my_result().output;
    const auto& b = *their_result().output;
    const std::int64_t row = s.query_heads * s.value_head_size;
    const std::int64_t first_a = (mine_.entry * a.shape[1] + mine_.query) * row;
    const std::int64_t first_b = (theirs_.entry * b.shape[1] + theirs_.query) * row;
    if (same_bytes(elements(a, first_a, row), elements(b, first_b, row))) return {};
    for (std::int64_t i = 0; i < row; ++i) {
      if (same_bytes(elements(a, first_a + i, 1), elements(b, first_b + i, 1))) continue;
      const double x = element(a, first_a + i), y = element(b, first_b + i);
      const std::int64_t head = i / s.value_head_size, lane = i % s.value_head_size;
      const double ratio =
          bitwise_ ? std::numeric_limits<double>::infinity() : ratio_to_bound(x, y, head, lane);
      if (ratio <= 1) continue;
      if (std::max(std::abs(x), std::abs(y)) < other_.smallest) {
        if (other_.spared) *other_.spared = true;
        continue;
      }
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
    return std::abs(x - y) / (2 * expected.bound[at]);
  }

  /// Columns are positions, of which both runs show those that both sequences have.
  std::optional<Difference> compare_qk() const {
    if (!shows_qk()) return std::nullopt;
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
        if (same_bytes(elements(a, at_a, 1), elements(b, at_b, 1))) continue;
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
  std::optional<Difference> difference;
  visit_shared(main, other, first_step, [&](Place mine, Place theirs, std::int64_t count) {
    if (other.shared) *other.shared += count;
    if (QueryPair(main, mine, other, theirs, bitwise).same_bits(count)) return true;
    for (; count > 0 && !difference; --count, ++mine.query, ++theirs.query) {
      difference = QueryPair(main, mine, other, theirs, bitwise).compare();
    }
    return !difference.has_value();
  });
  return difference;
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
      const std::int64_t begin = std::max(first, their_first);
      const auto equal = [&](const kernels::Tensor& mine, const kernels::Tensor& theirs) {
        return same_bytes(rows_bytes(mine, entry, h, begin - first, end - begin),
                          rows_bytes(theirs, e, h, begin - their_first, end - begin));
      };
      if (begin >= end || (equal(a->key, b->key) && equal(a->value, b->value))) continue;
      for (std::int64_t p = begin; p < end; ++p) {
        const std::int64_t r = p - first, their_r = p - their_first;
        const bool key =
            same_bytes(row_bytes(a->key, entry, h, r), row_bytes(b->key, e, h, their_r));
        const bool value =
            same_bytes(row_bytes(a->value, entry, h, r), row_bytes(b->value, e, h, their_r));
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
