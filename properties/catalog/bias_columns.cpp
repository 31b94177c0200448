// mask.bias_columns: a column of an additive mask belongs to one absolute position.
// The case is run under another mask. Every second row hides all keys but one that the query saw:
// o = v of that key (with a sink, its share). The others add 0 to what the case's own mask shows
// and -infinity to what it hides: the same output as under the boolean mask of these sets.
// Bundled, values show the digits of positions (digit_launch.h), and the lanes name the keys that
// took part. Alone, or where those are not clearly right, the case is spelled out with its own
// data, and the exact model judges both kinds of rows, within the bound.
#include <algorithm>
#include <limits>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "model/counter_hash.h"
#include "model/literal.h"
#include "model/mask.h"
#include "model/visibility.h"
#include "properties/catalog.h"
#include "properties/convert.h"
#include "properties/digit_check.h"
#include "properties/tensor_writer.h"
#include "properties/told_target.h"

namespace kvcheck::properties {
namespace {

using model::LiteralTensor;
using model::Scenario;

/// Where a key must not be hidden, it may be outweighed by this on both sides.
constexpr double kOutweighs = 40;

/// The columns of the row of one query.
class Columns {
 public:
  /// \param visible the keys that the query sees in the case
  /// \param outweighs what the open key gets, and the query's own key loses, where both stay
  Columns(const Case& c, std::size_t step, std::int64_t entry, std::int64_t head,
          std::int64_t query, const std::vector<model::Position>& visible, double outweighs)
      : own_row_(c.scenario(), c.timeline(), step, entry, head, query), outweighs_(outweighs) {
    if ((entry + head + query) % 2 != 0 || visible.empty()) return;
    const auto& s = c.scenario();
    const std::uint64_t hash = model::counter_hash(s.fill.seed, step, entry, head, query);
    open_ = visible[hash % visible.size()].value;
    const auto& state = c.timeline().steps()[step].entries[static_cast<std::size_t>(entry)];
    // gqa does not say what a query does whose own key is hidden.
    if (s.op == model::Operator::gqa) own_ = state.origin.value + query;
  }

  double at(std::int64_t key) const {
    constexpr double kHidden = -std::numeric_limits<double>::infinity();
    if (open_ < 0) return own_row_.at({key}).hides ? kHidden : 0;
    if (key == open_) return own_ >= 0 && own_ != open_ ? outweighs_ : 0;
    return key == own_ ? -outweighs_ : kHidden;
  }

  /// Puts the keys that stay in the place of those that the query sees in the case.
  void see(std::vector<model::Position>& seen) const {
    if (open_ < 0) return;
    seen.assign(1, {open_});
    if (own_ >= 0 && own_ != open_) seen.insert(seen.begin() + (own_ > open_ ? 1 : 0), {own_});
  }

 private:
  model::MaskRow own_row_;
  double outweighs_;
  std::int64_t open_ = -1;  // The one key that stays; -1 = the case's own sets.
  std::int64_t own_ = -1;   // The query's own key, where it may not be hidden.
};

model::MaskSpec whole_mask() {
  model::MaskSpec mask;
  mask.kind = model::MaskKind::additive;
  mask.rank = 4;
  return mask;
}

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
        const auto visible = model::visible_positions(c.scenario(), c.timeline(), step, b, h, q);
        const Columns row(c, step, b, h, q, visible, kOutweighs);
        for (std::int64_t j = 0; j < shapes.mask[3]; ++j) tensors.mask.values.push_back(row.at(j));
      }
    }
  }
}

Scenario with_columns(const Case& c) {
  Scenario s = c.scenario();
  s.fill.kind = model::FillKind::literal;
  s.fill.first_entry = 0;
  s.mask = whole_mask();
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

/// Writes the columns of every query into the mask [B,Nq,S,T] of a step.
void put_columns(const Case& c, std::size_t step, kernels::Tensor& mask) {
  TensorWriter writer(mask);
  std::vector<double> row(static_cast<std::size_t>(mask.shape[3]));
  std::vector<model::Position> visible;
  for (std::int64_t b = 0; b < mask.shape[0]; ++b) {
    const auto& state = c.timeline().steps()[step].entries[static_cast<std::size_t>(b)];
    for (std::int64_t h = 0; h < mask.shape[1]; ++h) {
      for (std::int64_t q = 0; q < mask.shape[2]; ++q) {
        std::ranges::fill(row, 0.0);
        if (q < state.queries) {
          model::visible_positions(c.scenario(), c.timeline(), step, b, h, q, visible);
          const Columns columns(c, step, b, h, q, visible, 0);
          for (std::size_t j = 0; j < row.size(); ++j) {
            row[j] = columns.at(static_cast<std::int64_t>(j));
          }
        }
        writer.put_row(row);
      }
    }
  }
}

/// Whether values that show digits of positions show every query to see the keys of its columns.
bool shown_by_digits(Case& c) {
  // A target that is told the scenario does not see the mask that is put in.
  if (dynamic_cast<ToldTarget*>(&c.target()) != nullptr) return false;
  if (!c.digits().check().clear()) return false;
  OtherMask other;
  other.mask = whole_mask();
  other.mask.hidden_percent = 0;
  other.interposer.append = [&c](std::size_t step, kernels::StepRequest& request) {
    put_columns(c, step, *request.mask);
  };
  other.see = [&c](MeasuredQuery& query) {
    const Columns columns(c, query.step, query.entry, query.head, query.query, query.expected, 0);
    columns.see(query.expected);
  };
  return c.digits().clearly_right(other);
}

Judgement judge(Case& c) {
  if (c.mode() == Case::Mode::bundled && shown_by_digits(c)) return {};
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
  return {"mask.bias_columns",
          "A column of an additive mask belongs to one absolute position, evicted ones "
          "counted, and 0 and -infinity mask as true and false do.",
          "columns counted from the oldest row, rows or heads of the mask mixed up, "
          "offsets that overflow, -infinity taken for a number",
          inapplicable, judge};
}

}  // namespace kvcheck::properties
