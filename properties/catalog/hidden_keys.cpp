// mask.hidden_keys: what the keys that a query may not see hold has no influence on it.
// K' = K and V' = V at visible(q), anything finite elsewhere => o'(q) = o(q), bit for bit. Holds
// for every query q' with visible(q') within visible(q) at the same time.
#include <algorithm>
#include <set>
#include <span>

#include <fmt/format.h>

#include "model/counter_hash.h"
#include "model/visibility.h"
#include "properties/catalog.h"
#include "properties/catalog/interposed.h"
#include "properties/convert.h"
#include "properties/position_text.h"

namespace kvcheck::properties {
namespace {

using model::Position;

/// Far beyond what the fills give, and still so small that a logit of it is finite.
double huge_key(model::ElementType type) { return type == model::ElementType::f16 ? 192 : 0x1p40; }
double huge_value(model::ElementType type) {
  return type == model::ElementType::f16 ? 60000 : 0x1p100;
}

/// The query whose hidden keys are replaced, and the keys that stay: by position and the step that
/// wrote them.
struct Chosen {
  std::size_t step = 0;
  std::int64_t entry = 0, query = 0, head = 0;
  std::vector<Position> visible;
  std::set<std::pair<std::int64_t, std::size_t>> kept;
};

std::set<std::pair<std::int64_t, std::size_t>> written_at(const Case& c, std::size_t step,
                                                          std::int64_t entry,
                                                          std::span<const Position> positions) {
  const auto written = c.timeline().written(step, entry, positions);
  std::set<std::pair<std::int64_t, std::size_t>> result;
  for (std::size_t i = 0; i < positions.size(); ++i) {
    result.emplace(positions[i].value, written[i].step);
  }
  return result;
}

/// A query that leaves some key unseen, by the content of the scenario; empty where none of those
/// tried does.
std::optional<Chosen> choose(const Case& c) {
  const auto& s = c.scenario();
  std::vector<std::size_t> steps;
  for (std::size_t i = 0; i < s.steps.size() && c.timeline().steps()[i].defined; ++i) {
    const auto* append = std::get_if<model::Append>(&s.steps[i]);
    if (append && *std::ranges::max_element(append->queries) > 0) steps.push_back(i);
  }
  if (steps.empty()) return std::nullopt;
  const std::uint64_t hash = model::counter_hash(s.fill.seed, s.mask.seed, s.steps.size());
  for (std::size_t turn = 0; turn < 2 * steps.size(); ++turn) {
    Chosen chosen;
    chosen.step = steps[(hash + turn / 2) % steps.size()];
    const auto pick = [&](int salt, std::int64_t count) {
      return static_cast<std::int64_t>(model::counter_hash(hash, salt) %
                                       static_cast<std::uint64_t>(count));
    };
    chosen.entry = pick(1, s.batch);
    chosen.head = pick(2, s.query_heads);
    const auto& state =
        c.timeline().steps()[chosen.step].entries[static_cast<std::size_t>(chosen.entry)];
    if (state.queries == 0) continue;
    chosen.query = turn % 2 == 0 ? state.queries - 1 : pick(3, state.queries);
    chosen.visible = model::visible_positions(s, c.timeline(), chosen.step, chosen.entry,
                                              chosen.head, chosen.query);
    if (static_cast<std::int64_t>(chosen.visible.size()) == state.length) continue;
    chosen.kept = written_at(c, chosen.step, chosen.entry, chosen.visible);
    return chosen;
  }
  return std::nullopt;
}

/// Overwrites hidden rows on their way in.
class Replacement {
 public:
  Replacement(const Case& c, const Chosen& chosen)
      : c_(c),
        chosen_(chosen),
        kv_head_(chosen.head / (c.scenario().query_heads / c.scenario().kv_heads)),
        key_(row_of(huge_key(c.scenario().element_type), c.scenario().head_size)),
        value_(row_of(huge_value(c.scenario().element_type), c.scenario().value_head_size)) {}

  void append(std::size_t step, kernels::StepRequest& request) const {
    const auto e = static_cast<std::size_t>(chosen_.entry);
    const std::int64_t past = c_.timeline().steps()[step].entries[e].past;
    for (std::int64_t i = 0; i < request.tokens[e]; ++i) {
      if (chosen_.kept.count({past + i, step}) > 0) continue;
      const std::int64_t row =
          (chosen_.entry * request.key.shape[1] + i) * c_.scenario().kv_heads + kv_head_;
      put_row(request.key, row, key_);
      put_row(request.value, row, value_);
    }
  }

  void load(std::size_t step, kernels::LoadRequest& request) const {
    const auto& state =
        c_.timeline().steps()[step].entries[static_cast<std::size_t>(chosen_.entry)];
    for (std::int64_t r = 0; r < state.resident; ++r) {
      if (chosen_.kept.count({state.first_position.value + r, step}) > 0) continue;
      overwrite(request.rows.key, r, key_);
      overwrite(request.rows.value, r, value_);
    }
  }

 private:
  static std::vector<double> row_of(double magnitude, std::int64_t lanes) {
    std::vector<double> row(static_cast<std::size_t>(lanes), magnitude);
    for (std::size_t i = 1; i < row.size(); i += 3) row[i] = -magnitude;
    return row;
  }

  void overwrite(kernels::Tensor& tensor, std::int64_t r, const std::vector<double>& huge) const {
    const std::int64_t row = (chosen_.entry * tensor.shape[1] + kv_head_) * tensor.shape[2] + r;
    if (c_.scenario().cache.quantisation.kind == model::QuantisationKind::none) {
      put_row(tensor, row, huge);
      return;
    }
    // 127, two codes of 7, or 448: the largest of each format.
    const bool fp8 = tensor.type == kernels::ElementType::f8e4m3;
    const bool int4 = tensor.type == kernels::ElementType::u8;
    const std::byte largest{static_cast<std::uint8_t>(int4 ? 0xff : fp8 ? 0x7e : 0x7f)};
    const auto width = static_cast<std::size_t>(tensor.shape[3]);
    std::fill_n(tensor.bytes.begin() + row * tensor.shape[3], width, largest);
  }

  const Case& c_;
  const Chosen& chosen_;
  std::int64_t kv_head_;
  std::vector<double> key_, value_;
};

/// Whether query `query` sees nothing that was replaced.
bool untouched(const Case& c, const Chosen& chosen, std::int64_t query) {
  if (query == chosen.query) return true;
  const auto visible = model::visible_positions(c.scenario(), c.timeline(), chosen.step,
                                                chosen.entry, chosen.head, query);
  return std::ranges::includes(chosen.visible, visible, {}, &Position::value, &Position::value);
}

Judgement influenced(const Case& c, const Chosen& chosen, std::int64_t query, std::int64_t lane,
                     double before, double after) {
  const auto& s = c.scenario();
  const auto& state =
      c.timeline().steps()[chosen.step].entries[static_cast<std::size_t>(chosen.entry)];
  shrinkers::Hint hint;
  hint.step = static_cast<std::int64_t>(chosen.step);
  hint.entry = chosen.entry;
  hint.query_head = chosen.head;
  return Judgement::failed(
      Kind::leak,
      fmt::format("step {} ({}), batch entry {}, head {}, query at position {}, lane {}: {:.9g} "
                  "becomes {:.9g} when all keys and values but those of positions {} hold huge "
                  "finite numbers",
                  chosen.step, model::describe(s.steps[chosen.step]), chosen.entry, chosen.head,
                  state.origin.value + query, lane, before, after, positions_text(chosen.visible)),
      hint);
}

Judgement judge(Case& c) {
  const Execution& execution = c.execution();
  if (!execution.complete) return Judgement::skipped(broke_off(c.scenario(), execution));
  const auto chosen = choose(c);
  if (!chosen) return Judgement::skipped("every query sees every key");
  const Replacement replacement(c, *chosen);
  Interposer interposer;
  interposer.append = [&](std::size_t step, kernels::StepRequest& request) {
    replacement.append(step, request);
  };
  interposer.load = [&](std::size_t step, kernels::LoadRequest& request) {
    replacement.load(step, request);
  };
  const Execution run =
      execute_interposed(c, interposer, {.want_rows = false, .step_count = chosen->step + 1});
  if (!run.complete) return Judgement::skipped(broke_off(c.scenario(), run));
  const auto& mine = execution.steps[chosen->step].result.output;
  const auto& theirs = run.steps[chosen->step].result.output;
  if (!mine || !theirs) return Judgement::skipped("the step has no output");
  const auto& state =
      c.timeline().steps()[chosen->step].entries[static_cast<std::size_t>(chosen->entry)];
  const auto& s = c.scenario();
  const std::size_t width = kernels::element_bytes(mine->type);
  for (std::int64_t q = 0; q < state.queries; ++q) {
    if (!untouched(c, *chosen, q)) continue;
    const std::int64_t first =
        ((chosen->entry * mine->shape[1] + q) * s.query_heads + chosen->head) * s.value_head_size;
    const auto bytes = [&](const kernels::Tensor& tensor, std::int64_t at) {
      return std::span(tensor.bytes).subspan(static_cast<std::size_t>(at) * width, width);
    };
    for (std::int64_t l = 0; l < s.value_head_size; ++l) {
      if (std::ranges::equal(bytes(*mine, first + l), bytes(*theirs, first + l))) continue;
      return influenced(c, *chosen, q, l, element(*mine, first + l), element(*theirs, first + l));
    }
  }
  return {};
}

}  // namespace

Property hidden_keys_property() {
  return {
      "mask.hidden_keys",
      "Replacing keys and values that a query may not see, whatever hides them, by huge finite "
      "ones changes no bit of its output.",
      "leaks of any kind, masks that multiply, a softcap that brings back what was hidden, maxima "
      "over hidden keys, stale rows",
      [](const model::Scenario&, const kernels::Capabilities& target) {
        return std::string(target.outputs ? "" : "the target computes no outputs");
      },
      judge};
}

}  // namespace kvcheck::properties
