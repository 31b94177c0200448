// positions.out_of_sight: older tokens that no query can see change nothing.
// The case is run with d more tokens in front, its own moved to positions p + d, with their data,
// masks and rotary positions: o'(p + d) = o(p) within twice the bound wherever the window leaves
// out position -1, and rows of position p + d hold what those of p held, bit for bit.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include "model/counter_hash.h"
#include "model/rotary.h"
#include "model/visibility.h"
#include "properties/catalog.h"
#include "properties/catalog/interposed.h"
#include "properties/catalog/sampled.h"
#include "properties/convert.h"
#include "properties/requests.h"
#include "properties/row_content.h"

namespace kvcheck::properties {
namespace {

constexpr const char* kId = "positions.out_of_sight";

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

/// Copies the columns of `mine`, one row after the other, to the ends of the rows of `theirs`,
/// which are longer.
void align_right(const kernels::Tensor& mine, kernels::Tensor& theirs) {
  const std::size_t width = kernels::element_bytes(mine.type);
  const auto from = static_cast<std::size_t>(mine.shape.back()) * width;
  const auto to = static_cast<std::size_t>(theirs.shape.back()) * width;
  if (from == 0) return;
  for (std::size_t row = 0; row < mine.bytes.size() / from; ++row) {
    std::memcpy(theirs.bytes.data() + row * to + (to - from), mine.bytes.data() + row * from, from);
  }
}

/// Makes the tokens of the shifted run those of the case.
class SameTokens {
 public:
  SameTokens(Case& c, const Shifted& other, const model::Timeline& timeline)
      : c_(c), other_(other), timeline_(timeline) {}

  void append(std::size_t step, kernels::StepRequest& request) const {
    const std::size_t here = step - other_.first_step;
    kernels::StepRequest mine;
    step_request(c_.scenario(), c_.timeline(), c_.fill(), here, c_.rows(), mine);
    request.query = mine.query;
    request.key = mine.key;
    request.value = mine.value;
    if (request.mask) align_right(*mine.mask, *request.mask);
    if (c_.scenario().rotary) request.position_ids = own_positions(here, request);
  }

  void load(std::size_t step, kernels::LoadRequest& request) const {
    if (step < other_.first_step) return;
    const auto mine = load_request(c_.scenario(), c_.timeline(), c_.fill(), 0, c_.rows());
    for (std::int64_t b = 0; b < c_.scenario().batch; ++b) {
      const auto e = static_cast<std::size_t>(b);
      const auto& state = c_.timeline().steps()[0].entries[e];
      const auto& their = timeline_.steps()[step].entries[e];
      for (std::int64_t r = 0; r < their.resident; ++r) {
        const std::int64_t from =
            their.first_position.value + r - other_.shift - state.first_position.value;
        if (from < 0 || from >= state.resident) continue;
        for (std::int64_t h = 0; h < c_.scenario().kv_heads; ++h) {
          copy_row(mine.rows.key, request.rows.key, b, h, from, r);
          copy_row(mine.rows.value, request.rows.value, b, h, from, r);
        }
      }
    }
  }

 private:
  static void copy_row(const kernels::Tensor& from, kernels::Tensor& to, std::int64_t entry,
                       std::int64_t head, std::int64_t row, std::int64_t to_row) {
    const auto bytes = row_bytes(from, entry, head, row);
    const auto target = row_bytes(to, entry, head, to_row);
    std::memcpy(to.bytes.data() + (target.data() - to.bytes.data()), bytes.data(), bytes.size());
  }

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
    const std::int64_t offset = other.shift - their.first_position.value;
    for (std::int64_t p = state.first_position.value; p < state.length; ++p) {
      const std::int64_t r = p - state.first_position.value, their_r = p + offset;
      if (their_r < 0 || r >= mine->key.shape[2] || their_r >= theirs->key.shape[2]) continue;
      for (std::int64_t h = 0; h < c.scenario().kv_heads; ++h) {
        const bool key = std::ranges::equal(row_bytes(mine->key, b, h, r),
                                            row_bytes(theirs->key, b, h, their_r));
        if (key && std::ranges::equal(row_bytes(mine->value, b, h, r),
                                      row_bytes(theirs->value, b, h, their_r))) {
          continue;
        }
        return differs(c, Kind::wrong_row, step, b,
                       h * (c.scenario().query_heads / c.scenario().kv_heads), other,
                       fmt::format("KV head {}: the {} of position {} (row {}) is not that of "
                                   "position {} (row {})",
                                   h, key ? "value" : "key", p, r, p + other.shift, their_r));
      }
    }
  }
  return std::nullopt;
}

std::optional<Judgement> compare_outputs(Case& c, const Shifted& other, const Execution& run,
                                         std::size_t step, std::int64_t& compared) {
  const auto& mine = c.execution().steps[step].result.output;
  const auto& theirs = run.steps[step + other.first_step].result.output;
  if (!mine || !theirs) return std::nullopt;
  const auto& s = c.scenario();
  const auto& expected = c.oracle().expected(step);
  for (std::int64_t b = 0; b < s.batch; ++b) {
    const auto& state = c.timeline().steps()[step].entries[static_cast<std::size_t>(b)];
    for (std::int64_t q = 0; q < state.queries; ++q) {
      const std::int64_t position = state.origin.value + q;
      if (position < *s.cache.window_size - 1) continue;
      for (std::int64_t h = 0; h < s.query_heads; ++h) {
        for (std::int64_t l = 0; l < s.value_head_size; ++l, ++compared) {
          const double x = output_at(*mine, b, q, h, l), y = output_at(*theirs, b, q, h, l);
          const auto at = model::element_index(s, expected, b, q, h, l);
          if (x == y || std::abs(x - y) <= 2 * expected.bound[at]) continue;
          if (!std::isfinite(x)) continue;  // Of another property.
          return differs(c, Kind::influence, step, b, h, other,
                         fmt::format("head {}, lane {}: the query at position {} gives {:.9g}, "
                                     "the same query at position {} gives {:.9g}",
                                     h, l, position, x, position + other.shift, y));
        }
      }
    }
  }
  return std::nullopt;
}

Judgement judge(Case& c) {
  if (const std::string why = passed_over(c, kId, 4); !why.empty()) {
    return Judgement::skipped(why);
  }
  const Execution& execution = c.execution();
  if (!execution.complete) return Judgement::skipped(broke_off(c.scenario(), execution));
  const Shifted other = shifted(c.scenario(), c.timeline());
  if (const std::string why = cannot_run(c.target(), other.scenario); !why.empty()) {
    return Judgement::skipped(why);
  }
  const model::Timeline timeline(other.scenario);
  const model::Fill fill(other.scenario, timeline);
  const SameTokens same(c, other, timeline);
  Interposer interposer;
  interposer.config = [](kernels::SessionConfig& config) {
    if (config.rotary) config.rotary->position_ids = true;
  };
  interposer.append = [&](std::size_t step, kernels::StepRequest& request) {
    same.append(step, request);
  };
  interposer.load = [&](std::size_t step, kernels::LoadRequest& request) {
    same.load(step, request);
  };
  const Execution run = execute_interposed(c, other.scenario, timeline, fill, interposer);
  if (!run.complete) return Judgement::skipped(broke_off(other.scenario, run));
  const RowContent content(c.scenario(), c.timeline(), c.fill(), c.roundoff());
  std::int64_t compared = 0;
  for (std::size_t i = 0; i < execution.steps.size(); ++i) {
    if (!c.timeline().steps()[i].defined || !timeline.steps()[i + other.first_step].defined) break;
    if (!content.has_ranges()) {
      if (auto failure = compare_rows(c, other, timeline, run, i)) return *failure;
    }
    if (auto failure = compare_outputs(c, other, run, i, compared)) return *failure;
  }
  return compared > 0 ? Judgement{}
                      : Judgement::skipped("every query is near enough to the start to see it");
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
