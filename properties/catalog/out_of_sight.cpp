// positions.out_of_sight: older tokens that no query can see change nothing.
// The case is run with d more tokens in front, its own moved to positions p + d, with their data,
// masks and rotary positions: o'(p + d) = o(p) within twice the bound wherever the window leaves
// out position -1, and rows of position p + d hold what those of p held, bit for bit.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>

#include <fmt/format.h>

#include "model/counter_hash.h"
#include "model/rotary.h"
#include "model/visibility.h"
#include "properties/catalog.h"
#include "properties/catalog/interposed.h"
#include "properties/convert.h"
#include "properties/requests.h"
#include "properties/row_content.h"

namespace kvcheck::properties {
namespace {

constexpr const char* kId = "positions.out_of_sight";
constexpr const char* kNoQuery = "every query is near enough to the start to see it";

using model::Scenario;

/// The case with `shift` tokens in front.
struct Shifted {
  Scenario scenario;
  std::int64_t shift = 0;
  std::size_t first_step = 0;  ///< Where step 0 of the case stands.
};

Shifted shifted(const Scenario& scenario, const model::Timeline& timeline) {
  Shifted result{scenario, 1, 0};
  Scenario& s = result.scenario;
  const std::int64_t window = s.cache.window_size.value_or(1);
  const std::int64_t shifts[] = {1, window, timeline.buffer_rows() + 1, 37};
  result.shift = shifts[model::counter_hash(s.fill.seed, s.steps.size()) % 4];
  if (s.cache.layout == model::LayoutKind::full && s.cache.capacity > 0) {
    s.cache.capacity += result.shift;
  }
  if (auto* past = std::get_if<model::Past>(&s.steps.front())) {
    for (auto& tokens : past->tokens) tokens += result.shift;
    return result;
  }
  model::Past past;
  past.tokens.assign(static_cast<std::size_t>(s.batch), result.shift);
  s.steps.insert(s.steps.begin(), past);
  result.first_step = 1;
  return result;
}

/// A mask with `count` columns more in front, which hide nothing: that is left to the window.
kernels::Tensor with_columns_in_front(const kernels::Tensor& mask, std::int64_t count) {
  kernels::Tensor wider{mask.type, mask.shape, {}};
  wider.shape.back() += count;
  const std::size_t width = kernels::element_bytes(mask.type);
  const std::size_t own = static_cast<std::size_t>(mask.shape.back()) * width;
  const std::size_t front = static_cast<std::size_t>(count) * width;
  const std::size_t rows = static_cast<std::size_t>(wider.elements() / wider.shape.back());
  // Additive: 0 in every type.
  const std::byte open{mask.type == kernels::ElementType::boolean ? std::uint8_t{1}
                                                                  : std::uint8_t{0}};
  wider.bytes.assign(rows * (front + own), open);
  for (std::size_t row = 0; row < rows && own > 0; ++row) {
    std::memcpy(wider.bytes.data() + row * (front + own) + front, mask.bytes.data() + row * own,
                own);
  }
  return wider;
}

/// The requests of the shifted run: its tokens are those of the case.
class SameTokens {
 public:
  SameTokens(Case& c, const Shifted& other, const model::Timeline& timeline)
      : c_(c), other_(other), timeline_(timeline) {}

  /// \pre `step` is not the first one, which is a past
  void append(std::size_t step, kernels::StepRequest& request) const {
    const std::size_t here = step - other_.first_step;
    step_request(c_.scenario(), c_.timeline(), c_.fill(), here, c_.rows(), request);
    if (request.mask) request.mask = with_columns_in_front(*request.mask, other_.shift);
    if (c_.scenario().rotary) request.position_ids = own_positions(here, request);
    if (!request.poison) return;
    const auto& before = timeline_.steps()[step - 1].entries;
    for (std::size_t e = 0; e < before.size(); ++e) {
      request.poison->first_row[e] = before[e].resident;
    }
  }

  void load(std::size_t step, kernels::LoadRequest& request) const {
    load_request(other_.scenario, timeline_, c_.fill(), step, c_.rows(), request, other_.shift);
  }

 private:
  /// i64 [B, tokens or queries]: the turns that the tokens have in the case.
  kernels::Tensor own_positions(std::size_t step, const kernels::StepRequest& request) const {
    const std::int64_t width = std::max(request.query.shape[1], request.key.shape[1]);
    auto ids = kernels::Tensor::zeros(kernels::ElementType::i64, {c_.scenario().batch, width});
    std::byte* where = ids.bytes.data();
    for (std::int64_t b = 0; b < c_.scenario().batch; ++b) {
      const auto e = static_cast<std::size_t>(b);
      const std::int64_t count = std::max(request.tokens[e], request.queries[e]);
      for (std::int64_t i = 0; i < width; ++i, where += sizeof(std::int64_t)) {
        if (i >= count) continue;
        const std::int64_t turn = model::rotary_position(c_.scenario(), c_.timeline(), step, b, i);
        std::memcpy(where, &turn, sizeof turn);
      }
    }
    return ids;
  }

  Case& c_;
  const Shifted& other_;
  const model::Timeline& timeline_;
};

Judgement differs(Case& c, Kind kind, std::size_t step, std::int64_t entry, std::int64_t head,
                  const Shifted& other, const std::string& what) {
  shrinkers::Hint hint;
  hint.step = static_cast<std::int64_t>(step);
  hint.entry = entry;
  hint.query_head = head;
  return Judgement::failed(
      kind,
      fmt::format("with {} more token{} in front, out of sight: step {} ({}), batch entry {}, {}",
                  other.shift, other.shift > 1 ? "s" : "", step,
                  model::describe(c.scenario().steps[step]), entry, what),
      hint);
}

bool same_bytes(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

/// Neighbouring rows of one entry and KV head.
std::span<const std::byte> rows_from(const kernels::Tensor& rows, std::int64_t entry,
                                     std::int64_t head, std::int64_t row, std::int64_t count) {
  const auto first = row_bytes(rows, entry, head, row);
  return {first.data(), first.size() * static_cast<std::size_t>(count)};
}

std::optional<Judgement> compare_rows(Case& c, const Shifted& other,
                                      const model::Timeline& timeline, const Execution& run,
                                      std::size_t step) {
  const auto& mine = c.execution().steps[step].result.rows;
  const auto& theirs = run.steps[step + other.first_step].result.rows;
  if (!mine || !theirs) return std::nullopt;
  for (std::int64_t b = 0; b < c.scenario().batch; ++b) {
    const auto e = static_cast<std::size_t>(b);
    const auto& state = c.timeline().steps()[step].entries[e];
    const auto& their = timeline.steps()[step + other.first_step].entries[e];
    // Rows r and r + apart hold the same token.
    const std::int64_t apart =
        state.first_position.value + other.shift - their.first_position.value;
    const std::int64_t begin = std::max<std::int64_t>(0, -apart);
    const std::int64_t end = std::min({state.length - state.first_position.value,
                                       mine->key.shape[2], theirs->key.shape[2] - apart});
    if (begin >= end) continue;
    for (std::int64_t h = 0; h < c.scenario().kv_heads; ++h) {
      const auto same = [&](const kernels::Tensor& a, const kernels::Tensor& t, std::int64_t row,
                            std::int64_t count) {
        return same_bytes(rows_from(a, b, h, row, count), rows_from(t, b, h, row + apart, count));
      };
      if (same(mine->key, theirs->key, begin, end - begin) &&
          same(mine->value, theirs->value, begin, end - begin)) {
        continue;
      }
      for (std::int64_t r = begin; r < end; ++r) {
        const bool key = same(mine->key, theirs->key, r, 1);
        if (key && same(mine->value, theirs->value, r, 1)) continue;
        const std::int64_t p = state.first_position.value + r;
        return differs(c, Kind::wrong_row, step, b,
                       h * (c.scenario().query_heads / c.scenario().kv_heads), other,
                       fmt::format("KV head {}: the {} of position {} (row {}) is not that of "
                                   "position {} (row {})",
                                   h, key ? "value" : "key", p, r, p + other.shift, r + apart));
      }
    }
  }
  return std::nullopt;
}

/// Compares all heads of one query, [Nq,Hv] elements each.
std::optional<Judgement> compare_query(Case& c, const Shifted& other, std::size_t step,
                                       std::int64_t b, std::int64_t q, const kernels::Tensor& mine,
                                       const kernels::Tensor& theirs) {
  const auto& s = c.scenario();
  const std::int64_t count = s.query_heads * s.value_head_size;
  const std::int64_t first = (b * mine.shape[1] + q) * count;
  const std::size_t width = kernels::element_bytes(mine.type);
  const auto bytes = [&](const kernels::Tensor& tensor) {
    return std::span(tensor.bytes)
        .subspan(static_cast<std::size_t>(first) * width, static_cast<std::size_t>(count) * width);
  };
  if (same_bytes(bytes(mine), bytes(theirs))) return std::nullopt;
  const auto& expected = c.oracle().expected(step);
  for (std::int64_t i = 0; i < count; ++i) {
    const double x = element(mine, first + i), y = element(theirs, first + i);
    const std::int64_t h = i / s.value_head_size, l = i % s.value_head_size;
    const auto at = model::element_index(s, expected, b, q, h, l);
    if (x == y || std::abs(x - y) <= 2 * expected.bound[at]) continue;
    if (!std::isfinite(x)) continue;  // Of another property.
    const auto& state = c.timeline().steps()[step].entries[static_cast<std::size_t>(b)];
    const std::int64_t position = state.origin.value + q;
    return differs(c, Kind::influence, step, b, h, other,
                   fmt::format("head {}, lane {}: the query at position {} gives {:.9g}, "
                               "the same query at position {} gives {:.9g}",
                               h, l, position, x, position + other.shift, y));
  }
  return std::nullopt;
}

/// Whether the window of a query leaves out position -1.
bool is_compared(const Scenario& s, const model::EntryStep& state, std::int64_t query) {
  return state.origin.value + query >= *s.cache.window_size - 1;
}

bool compares_a_query(const Case& c, const Shifted& other, const model::Timeline& timeline) {
  const auto& steps = c.timeline().steps();
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (!steps[i].defined || !timeline.steps()[i + other.first_step].defined) break;
    const bool found = std::ranges::any_of(steps[i].entries, [&](const model::EntryStep& state) {
      return state.queries > 0 && is_compared(c.scenario(), state, state.queries - 1);
    });
    if (found) return true;
  }
  return false;
}

std::optional<Judgement> compare_outputs(Case& c, const Shifted& other, const Execution& run,
                                         std::size_t step, bool& compared) {
  const auto& mine = c.execution().steps[step].result.output;
  const auto& theirs = run.steps[step + other.first_step].result.output;
  if (!mine || !theirs) return std::nullopt;
  const auto& s = c.scenario();
  for (std::int64_t b = 0; b < s.batch; ++b) {
    const auto& state = c.timeline().steps()[step].entries[static_cast<std::size_t>(b)];
    for (std::int64_t q = 0; q < state.queries; ++q) {
      if (!is_compared(s, state, q)) continue;
      compared = true;
      if (auto failure = compare_query(c, other, step, b, q, *mine, *theirs)) return failure;
    }
  }
  return std::nullopt;
}

/// Whether a correct row has the bits of what the operator was given.
bool stores_what_it_is_given(const Scenario& s) {
  return !s.rotary && !s.qk_norm && s.cache.quantisation.kind == model::QuantisationKind::none;
}

Judgement judge(Case& c) {
  const Execution& execution = c.execution();
  if (!execution.complete) return Judgement::skipped(broke_off(c.scenario(), execution));
  const Shifted other = shifted(c.scenario(), c.timeline());
  const model::Timeline timeline(other.scenario);
  // Rows are compared as well, which many other runs do: no run for these alone.
  const bool alone = c.mode() == Case::Mode::alone;
  if (!alone && !compares_a_query(c, other, timeline)) return Judgement::skipped(kNoQuery);
  if (const std::string why = cannot_run(c.target(), other.scenario); !why.empty()) {
    return Judgement::skipped(why);
  }
  const SameTokens same(c, other, timeline);
  Interposer interposer;
  interposer.config = [](kernels::SessionConfig& config) {
    if (config.rotary) config.rotary->position_ids = true;
  };
  interposer.make_append = [&](std::size_t step, kernels::StepRequest& request) {
    same.append(step, request);
  };
  interposer.make_load = [&](std::size_t step, kernels::LoadRequest& request) {
    same.load(step, request);
  };
  const bool rows = stores_what_it_is_given(c.scenario());
  const Execution run =
      execute_interposed(c, other.scenario, timeline, c.fill(), interposer, {.want_rows = rows});
  if (!run.complete) return Judgement::skipped(broke_off(other.scenario, run));
  bool compared = false;
  for (std::size_t i = 0; i < execution.steps.size(); ++i) {
    if (!c.timeline().steps()[i].defined || !timeline.steps()[i + other.first_step].defined) break;
    if (rows) {
      if (auto failure = compare_rows(c, other, timeline, run, i)) return *failure;
    }
    if (auto failure = compare_outputs(c, other, run, i, compared)) return *failure;
  }
  return compared ? Judgement{} : Judgement::skipped(kNoQuery);
}

std::string inapplicable(const Scenario& scenario, const kernels::Capabilities& target) {
  if (!target.outputs) return "the target computes no outputs";
  if (!target.has("load")) return "the target cannot be given a past";
  if (scenario.cache.window_size.value_or(0) <= 0) return "there is no window";
  return fixed_data_reason(scenario);
}

}  // namespace

Property out_of_sight_property() {
  return {kId,
          "Older tokens that no query can see change nothing: with more of them in "
          "front, the same tokens give the same rows and, within twice the bound, the "
          "same outputs.",
          "positions counted from the oldest row, windows or bias columns taken from the "
          "wrong end, rows read past the window, lengths that wrap",
          inapplicable, judge};
}

}  // namespace kvcheck::properties
