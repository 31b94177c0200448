// mask.hidden_keys: what the keys that a query may not see hold has no influence on it.
// K' = K and V' = V at visible(q), anything finite elsewhere => o'(q) = o(q), bit for bit. Holds
// for every query q' with visible(q') within visible(q) at the same time, and, as rows of one KV
// head of one entry are replaced, for all queries of other heads and entries in every step: these
// are compared where the target promises that two runs are alike.
#include <algorithm>
#include <cstring>
#include <optional>
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
  std::vector<model::Written> written;  // Of each that is visible.

  bool keeps(std::int64_t position, std::size_t by_step) const {
    const auto found = std::ranges::lower_bound(visible, position, {}, &Position::value);
    if (found == visible.end() || found->value != position) return false;
    return written[static_cast<std::size_t>(found - visible.begin())].step == by_step;
  }
};

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
    chosen.written = c.timeline().written(chosen.step, chosen.entry, chosen.visible);
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
      if (chosen_.keeps(past + i, step)) continue;
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
      if (chosen_.keeps(state.first_position.value + r, step)) continue;
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

/// One query of one head.
struct Place {
  std::size_t step = 0;
  std::int64_t entry = 0, query = 0, head = 0;
};

/// Whether query `query` of `head`, which reads the replaced rows, sees none of them. `visible` is
/// memory.
bool untouched(const Case& c, const Chosen& chosen, std::int64_t head, std::int64_t query,
               std::vector<Position>& visible) {
  if (query == chosen.query && head == chosen.head) return true;
  model::visible_positions(c.scenario(), c.timeline(), chosen.step, chosen.entry, head, query,
                           visible);
  return std::ranges::includes(chosen.visible, visible, {}, &Position::value, &Position::value);
}

Judgement influenced(const Case& c, const Chosen& chosen, const Place& place, std::int64_t lane,
                     double before, double after) {
  const auto& s = c.scenario();
  const auto& state =
      c.timeline().steps()[place.step].entries[static_cast<std::size_t>(place.entry)];
  const std::int64_t group = s.query_heads / s.kv_heads;
  const bool reads = place.entry == chosen.entry && place.head / group == chosen.head / group;
  shrinkers::Hint hint;
  hint.step = static_cast<std::int64_t>(place.step);
  hint.entry = place.entry;
  hint.query_head = place.head;
  return Judgement::failed(
      Kind::leak,
      fmt::format(
          "step {} ({}), batch entry {}, head {}, query at position {}, lane {}: {:.9g} "
          "becomes {:.9g} when all keys and values{} but those of positions {} hold huge "
          "finite numbers",
          place.step, model::describe(s.steps[place.step]), place.entry, place.head,
          state.origin.value + place.query, lane, before, after,
          reads ? ""
                : fmt::format(" of batch entry {}, KV head {}", chosen.entry, chosen.head / group),
          positions_text(chosen.visible)),
      hint);
}

/// Outputs of one step [B,S,Nq,Hv] in both runs.
struct Outputs {
  const kernels::Tensor& mine;
  const kernels::Tensor& theirs;
};

/// Compares heads [first, end) of one query.
std::optional<Judgement> compare_heads(const Case& c, const Chosen& chosen, const Place& place,
                                       std::int64_t end, const Outputs& outputs) {
  const auto& s = c.scenario();
  const std::int64_t row =
      (place.entry * outputs.mine.shape[1] + place.query) * s.query_heads + place.head;
  const std::int64_t first = row * s.value_head_size;
  const std::int64_t count = (end - place.head) * s.value_head_size;
  const std::size_t width = kernels::element_bytes(outputs.mine.type);
  const auto same = [&](std::int64_t at, std::int64_t elements) {
    const auto begin = static_cast<std::size_t>(at) * width;
    return elements == 0 ||
           std::memcmp(outputs.mine.bytes.data() + begin, outputs.theirs.bytes.data() + begin,
                       static_cast<std::size_t>(elements) * width) == 0;
  };
  if (same(first, count)) return std::nullopt;
  for (std::int64_t i = 0; i < count; ++i) {
    if (same(first + i, 1)) continue;
    const Place there{place.step, place.entry, place.query, place.head + i / s.value_head_size};
    return influenced(c, chosen, there, i % s.value_head_size, element(outputs.mine, first + i),
                      element(outputs.theirs, first + i));
  }
  return std::nullopt;
}

/// Compares the heads of the chosen step that read the replaced rows, where they see none of them.
std::optional<Judgement> compare_readers(const Case& c, const Chosen& chosen,
                                         const Outputs& outputs) {
  const auto& s = c.scenario();
  const auto& state =
      c.timeline().steps()[chosen.step].entries[static_cast<std::size_t>(chosen.entry)];
  const std::int64_t group = s.query_heads / s.kv_heads;
  const std::int64_t first = chosen.head / group * group;
  const bool alike = model::heads_see_alike(s);
  std::vector<Position> visible;
  for (std::int64_t q = 0; q < state.queries; ++q) {
    // The chosen head first: a finding names it where it can.
    if (!untouched(c, chosen, chosen.head, q, visible)) {
      if (alike) continue;
    } else {
      const Place own{chosen.step, chosen.entry, q, chosen.head};
      if (auto leak = compare_heads(c, chosen, own, chosen.head + 1, outputs)) return leak;
    }
    for (std::int64_t h = first; h < first + group; ++h) {
      if (h == chosen.head || (!alike && !untouched(c, chosen, h, q, visible))) continue;
      const Place place{chosen.step, chosen.entry, q, h};
      if (auto leak = compare_heads(c, chosen, place, h + 1, outputs)) return leak;
    }
  }
  return std::nullopt;
}

/// Compares all that reads no replaced row in one step.
std::optional<Judgement> compare_others(const Case& c, const Chosen& chosen, std::size_t step,
                                        const Outputs& outputs) {
  const auto& s = c.scenario();
  const std::int64_t group = s.query_heads / s.kv_heads;
  const std::int64_t first = chosen.head / group * group;
  for (std::int64_t b = 0; b < s.batch; ++b) {
    const auto& state = c.timeline().steps()[step].entries[static_cast<std::size_t>(b)];
    for (std::int64_t q = 0; q < state.queries; ++q) {
      const std::int64_t end = b == chosen.entry ? first : s.query_heads;
      if (auto leak = compare_heads(c, chosen, {step, b, q, 0}, end, outputs)) return leak;
      if (b != chosen.entry) continue;
      const Place behind{step, b, q, first + group};
      if (auto leak = compare_heads(c, chosen, behind, s.query_heads, outputs)) return leak;
    }
  }
  return std::nullopt;
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
  const auto outputs_of = [&](std::size_t step) -> std::optional<Outputs> {
    const auto& mine = execution.steps[step].result.output;
    const auto& theirs = run.steps[step].result.output;
    if (!mine || !theirs) return std::nullopt;
    return Outputs{*mine, *theirs};
  };
  const auto outputs = outputs_of(chosen->step);
  if (!outputs) return Judgement::skipped("the step has no output");
  if (auto leak = compare_readers(c, *chosen, *outputs)) return *leak;
  if (!c.capabilities().has("repeat_bits")) return {};
  for (std::size_t i = 0; i <= chosen->step; ++i) {
    const auto both = outputs_of(i);
    if (!both) continue;
    if (auto leak = compare_others(c, *chosen, i, *both)) return *leak;
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
