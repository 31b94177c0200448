// mask.bias_columns: a column of an additive mask belongs to one absolute position.
// The case is spelled out with another mask. Every second row hides all keys but one that the query
// saw: o = v of that key (with a sink, its share). The others add 0 to what the case's own mask
// shows and -infinity to what it hides: the same output as under the boolean mask of these sets.
// Both are judged by the exact model, within the bound.
#include <limits>
#include <span>

#include <fmt/format.h>

#include "model/counter_hash.h"
#include "model/literal.h"
#include "model/mask.h"
#include "model/visibility.h"
#include "properties/catalog.h"
#include "properties/catalog/sampled.h"
#include "properties/convert.h"

namespace kvcheck::properties {
namespace {

constexpr const char* kId = "mask.bias_columns";

using model::LiteralTensor;
using model::Scenario;

/// Where a key must not be hidden, it is outweighed by this on both sides.
constexpr double kOutweighs = 40;

/// The columns of the row of one query.
class MaskRow {
 public:
  MaskRow(const Case& c, std::size_t step, std::int64_t entry, std::int64_t head,
          std::int64_t query)
      : c_(c), step_(step), entry_(entry), head_(head), query_(query) {
    const auto& s = c.scenario();
    const auto visible = model::visible_positions(s, c.timeline(), step, entry, head, query);
    if ((entry + head + query) % 2 != 0 || visible.empty()) return;
    const std::uint64_t hash = model::counter_hash(s.fill.seed, step, entry, head, query);
    open_ = visible[hash % visible.size()].value;
    const auto& state = c.timeline().steps()[step].entries[static_cast<std::size_t>(entry)];
    // gqa does not say what a query does whose own key is hidden.
    if (s.op == model::Operator::gqa) own_ = state.origin.value + query;
  }

  double at(std::int64_t key) const {
    constexpr double kHidden = -std::numeric_limits<double>::infinity();
    if (open_ < 0) {
      const auto cell =
          model::mask_cell(c_.scenario(), c_.timeline(), step_, entry_, head_, query_, {key});
      return cell.hides ? kHidden : 0;
    }
    if (key == open_) return own_ >= 0 && own_ != open_ ? kOutweighs : 0;
    return key == own_ ? -kOutweighs : kHidden;
  }

 private:
  const Case& c_;
  std::size_t step_;
  std::int64_t entry_, head_, query_;
  std::int64_t open_ = -1;  // The one key that stays; -1 = the case's own sets.
  std::int64_t own_ = -1;   // The query's own key, where it may not be hidden.
};

/// What `fill_row(entry, row, head, lanes)` writes, in the shape [entry][row][head][lane].
template <class FillRow>
LiteralTensor tensor_of(const std::vector<std::int64_t>& shape, FillRow fill_row) {
  LiteralTensor tensor{shape, {}};
  if (shape.empty()) return tensor;
  const auto lanes = static_cast<std::size_t>(shape[3]);
  tensor.values.resize(static_cast<std::size_t>(shape[0] * shape[1] * shape[2]) * lanes, 0.0);
  std::span<double> rest(tensor.values);
  for (std::int64_t a = 0; a < shape[0]; ++a) {
    for (std::int64_t b = 0; b < shape[1]; ++b) {
      for (std::int64_t h = 0; h < shape[2]; ++h) {
        fill_row(a, b, h, rest.first(lanes));
        rest = rest.subspan(lanes);
      }
    }
  }
  return tensor;
}

void spell_out(const Case& c, std::size_t step, std::int64_t generation, Scenario& out) {
  const auto shapes = model::literal_shapes(out, c.timeline(), step);
  auto* append = std::get_if<model::Append>(&out.steps[step]);
  model::StepTensors& tensors =
      append ? append->tensors : std::get<model::Past>(out.steps[step]).tensors;
  const auto& entries = c.timeline().steps()[step].entries;
  const std::int64_t own_generation = append ? append->generation : 0;
  const auto state = [&](std::int64_t b) -> const model::EntryStep& {
    return entries[static_cast<std::size_t>(b)];
  };
  const auto token = [&](std::int64_t b, std::int64_t i) {
    return model::Token{{(append ? state(b).past : 0) + i}, own_generation};
  };
  const auto live = [&](std::int64_t b, std::int64_t i) {
    return i < state(b).length - (append ? state(b).past : 0);
  };
  tensors.k = tensor_of(shapes.k, [&](auto b, auto i, auto h, std::span<double> lanes) {
    if (live(b, i)) c.fill().key_row(b, h, token(b, i), lanes);
  });
  tensors.v = tensor_of(shapes.v, [&](auto b, auto i, auto h, std::span<double> lanes) {
    if (live(b, i)) c.fill().value_row(b, h, token(b, i), lanes);
  });
  if (!append) return;
  tensors.q = tensor_of(shapes.q, [&](auto b, auto i, auto h, std::span<double> lanes) {
    if (i < state(b).queries) c.fill().query_row(step, b, h, i, lanes);
  });
  append->generation = generation;
  if (shapes.mask.empty()) return;
  tensors.mask = {shapes.mask, {}};
  for (std::int64_t b = 0; b < shapes.mask[0]; ++b) {
    for (std::int64_t h = 0; h < shapes.mask[1]; ++h) {
      for (std::int64_t q = 0; q < shapes.mask[2]; ++q) {
        if (!c.timeline().steps()[step].defined || q >= state(b).queries) {
          tensors.mask.values.resize(
              tensors.mask.values.size() + static_cast<std::size_t>(shapes.mask[3]), 0);
          continue;
        }
        const MaskRow row(c, step, b, h, q);
        for (std::int64_t j = 0; j < shapes.mask[3]; ++j) tensors.mask.values.push_back(row.at(j));
      }
    }
  }
}

Scenario with_columns(const Case& c) {
  Scenario s = c.scenario();
  s.fill.kind = model::FillKind::literal;
  s.fill.first_entry = 0;
  s.mask = {};
  s.mask.kind = model::MaskKind::additive;
  s.mask.rank = 4;
  std::int64_t rollbacks = 0;
  for (std::size_t i = 0; i < s.steps.size(); ++i) {
    if (std::holds_alternative<model::Rollback>(s.steps[i])) {
      ++rollbacks;
    } else {
      spell_out(c, i, rollbacks, s);
    }
  }
  return model::normalise(s);
}

Judgement judge(Case& c) {
  if (const std::string why = passed_over(c, kId, 4); !why.empty()) {
    return Judgement::skipped(why);
  }
  const Scenario s = with_columns(c);
  if (s.fill.kind != model::FillKind::literal) {
    return Judgement::skipped("the scenario is too large to be spelled out");
  }
  if (const std::string why = cannot_run(c.target(), s); !why.empty()) {
    return Judgement::skipped(why);
  }
  Case other(c.target(), s);
  Judgement judgement = values_property().judge(other);
  if (judgement.verdict == Verdict::failed) {
    judgement.text =
        "under an additive mask of 0 and -infinity, one open column in every second "
        "row: " +
        judgement.text;
  }
  return judgement;
}

std::string inapplicable(const Scenario& scenario, const kernels::Capabilities& target) {
  if (!target.outputs) return "the target computes no outputs";
  if (scenario.mask.kind == model::MaskKind::none) return "the scenario has no mask";
  const char* feature = scenario.op == model::Operator::gqa ? "attention_bias" : "mask_additive";
  if (!target.has(feature)) return fmt::format("the target does not claim {}", feature);
  return fixed_tensors_reason(scenario);
}

}  // namespace

Property bias_columns_property() {
  return {kId,
          "A column of an additive mask belongs to one absolute position, evicted ones "
          "counted, and 0 and -infinity mask as true and false do.",
          "columns counted from the oldest row, rows or heads of the mask mixed up, "
          "offsets that overflow, -infinity taken for a number",
          inapplicable, judge};
}

}  // namespace kvcheck::properties
