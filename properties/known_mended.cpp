// The session as a scenario that spells its tensors out, its answers held against two oracles.
#include "properties/known_mended.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "model/element_type.h"
#include "model/literal.h"
#include "model/mask.h"
#include "model/oracle.h"
#include "model/wrong_models.h"
#include "properties/convert.h"
#include "properties/execution.h"

namespace kvcheck::properties {
namespace {

using kernels::Answer;
using kernels::Tensor;
using model::LiteralTensor;
using model::Scenario;

LiteralTensor literal(const Tensor& tensor) {
  LiteralTensor out{tensor.shape, {}};
  const std::int64_t count = tensor.elements();
  for (std::int64_t i = 0; i < count; ++i) out.values.push_back(element(tensor, i));
  return out;
}

/// [B,N,R,H], the first rows of which are tokens, as [B][tokens][N][H].
LiteralTensor literal_rows(const Tensor& rows, std::int64_t tokens) {
  const std::int64_t heads = rows.shape[1], lanes = rows.shape[3];
  LiteralTensor out{{rows.shape[0], tokens, heads, lanes}, {}};
  for (std::int64_t b = 0; b < rows.shape[0]; ++b) {
    for (std::int64_t r = 0; r < tokens; ++r) {
      for (std::int64_t h = 0; h < heads; ++h) {
        const std::int64_t at = ((b * heads + h) * rows.shape[2] + r) * lanes;
        for (std::int64_t l = 0; l < lanes; ++l) out.values.push_back(element(rows, at + l));
      }
    }
  }
  return out;
}

/// The mask in the shape [B,Nq,S,T]; columns that it lacks hide.
LiteralTensor literal_mask(const Tensor& mask, const std::vector<std::int64_t>& shape) {
  LiteralTensor out{shape, {}};
  const double hidden =
      mask.type == kernels::ElementType::boolean ? 0.0 : -std::numeric_limits<double>::infinity();
  std::vector<std::int64_t> have(4 - std::min<std::size_t>(4, mask.shape.size()), 1);
  have.insert(have.end(), mask.shape.begin(), mask.shape.end());
  std::vector<std::int64_t> at(4, 0);
  const auto value = [&] {
    std::int64_t index = 0;
    for (std::size_t d = 0; d < 4; ++d) {
      const bool stands_for_all = d < 3 && have[d] == 1;
      if (!stands_for_all && at[d] >= have[d]) return hidden;
      index = index * have[d] + (stands_for_all ? 0 : at[d]);
    }
    return element(mask, index);
  };
  for (at[0] = 0; at[0] < shape[0]; ++at[0]) {
    for (at[1] = 0; at[1] < shape[1]; ++at[1]) {
      for (at[2] = 0; at[2] < shape[2]; ++at[2]) {
        for (at[3] = 0; at[3] < shape[3]; ++at[3]) out.values.push_back(value());
      }
    }
  }
  return out;
}

template <class Enum>
Enum named(const std::string& name, std::initializer_list<Enum> all) {
  for (const Enum one : all) {
    if (to_string(one) == name) return one;
  }
  return *all.begin();
}

/// What the session is asked for, without its steps.
Scenario scenario_of(const kernels::SessionConfig& config) {
  Scenario s;
  s.op = model::Operator::attention;
  s.opset = config.opset;
  s.batch = config.batch;
  s.query_heads = config.query_heads;
  s.kv_heads = config.kv_heads;
  s.head_size = config.head_size;
  s.value_head_size = config.value_head_size;
  s.element_type = to_model(config.element_type);
  s.cache.capacity = config.capacity;
  if (config.window_size >= 0) s.cache.window_size = config.window_size;
  if (config.right_window_size >= 0) s.right_window_size = config.right_window_size;
  s.causal = config.causal;
  s.nonpad_kv_seqlen = config.nonpad_kv_seqlen;
  s.share_buffers = config.share_buffers;
  using model::MaskKind, model::QkOutput;
  s.mask.kind = named(config.mask, {MaskKind::none, MaskKind::boolean, MaskKind::additive});
  s.mask.rank = 4;
  if (config.scale != 0) s.scale = config.scale;
  s.softcap = config.softcap;
  s.qk_output = named(config.qk_output, {QkOutput::none, QkOutput::raw, QkOutput::softcapped,
                                         QkOutput::biased, QkOutput::probabilities});
  if (config.softmax_precision) s.softmax_precision = to_model(*config.softmax_precision);
  s.fill.kind = model::FillKind::literal;
  return s;
}

void put(Tensor& tensor, std::int64_t index, double value) {
  const std::size_t width = kernels::element_bytes(tensor.type);
  model::store_element(to_model(tensor.type), value,
                       tensor.bytes.data() + static_cast<std::size_t>(index) * width);
}

bool near(double observed, double expected, double bound) {
  if (std::isinf(bound) || observed == expected) return true;
  return std::abs(observed - expected) <= bound;
}

/// One answer, and the oracle of the session so far.
class Mending {
 public:
  Mending(const kernels::Capabilities& target, const Scenario& scenario,
          kernels::StepResult& result)
      : profile_(arithmetic_profile(target, scenario)),
        right_(scenario, profile_),
        step_(scenario.steps.size() - 1),
        result_(result) {}

  bool defined() const { return right_.timeline().steps()[step_].defined; }

  std::int64_t mend(const KnownFinding& known) {
    if (!concerns(known.condition, right_.scenario())) return 0;
    if (known.values == KnownValues::lowest_for_hidden) return mend_lowest(known);
    const model::WrongModel* wrong = model::find_wrong_model(known.reading);
    return wrong ? mend_reading(known, wrong->reading) : 0;
  }

 private:
  /// Calls `each(entry, query, head)` for every query of the entry's condition.
  template <class Each>
  void for_each_row(const KnownFinding& known, Each&& each) {
    const auto& entries = right_.timeline().steps()[step_].entries;
    for (std::size_t b = 0; b < entries.size(); ++b) {
      if (!concerns(known.condition, entries[b])) continue;
      for (std::int64_t i = 0; i < entries[b].queries; ++i) {
        for (std::int64_t h = 0; h < right_.scenario().query_heads; ++h) {
          each(static_cast<std::int64_t>(b), i, h);
        }
      }
    }
  }

  /// The intermediate where it has the shape that it should have.
  Tensor* intermediate() {
    const Scenario& s = right_.scenario();
    if (!result_.qk || s.qk_output == model::QkOutput::none) return nullptr;
    const model::QkExpected& expected = right_.expected_qk(step_);
    const std::vector<std::int64_t> shape{s.batch, s.query_heads, expected.queries,
                                          expected.columns};
    return result_.qk->shape == shape ? &*result_.qk : nullptr;
  }

  /// What the operator hands out one stage earlier, where the mask hides nothing yet.
  const model::QkExpected& logits_before_mask() {
    Scenario earlier = right_.scenario();
    earlier.qk_output = model::QkOutput::softcapped;
    earlier_.emplace(earlier, profile_);
    return earlier_->expected_qk(step_);
  }

  std::int64_t mend_lowest(const KnownFinding& known) {
    Tensor* qk = intermediate();
    if (!qk) return 0;
    const Scenario& s = right_.scenario();
    const model::QkExpected& expected = right_.expected_qk(step_);
    const model::QkExpected& logits = logits_before_mask();
    const double lowest = -model::largest_finite(s.element_type);
    const double spacing = -lowest * 2 * model::unit_roundoff(s.element_type);
    std::int64_t mended = 0;
    for_each_row(known, [&](std::int64_t b, std::int64_t i, std::int64_t h) {
      const std::int64_t columns =
          right_.timeline().steps()[step_].entries[static_cast<std::size_t>(b)].length;
      const std::int64_t row = (b * s.query_heads + h) * expected.queries + i;
      for (std::int64_t j = 0; j < expected.columns; ++j) {
        const std::int64_t at = row * expected.columns + j;
        const double value = expected.values[static_cast<std::size_t>(at)];
        const bool hidden = std::isinf(value) && value < 0;
        const auto index = static_cast<std::size_t>(at);
        // The lowest number, or where the logit outweighs its last place the sum of both. Which of
        // them, depends on the processor and the element type.
        const double bias = s.mask.kind == model::MaskKind::none || j >= columns
                                ? 0
                                : model::mask_cell(s, right_.timeline(), step_, b, h, i, {j}).bias;
        const double sum = lowest + bias + logits.values[index];
        const double found = element(*qk, at);
        const bool told = found == lowest || near(found, sum, logits.bound[index] + spacing);
        if (!hidden || !told) continue;
        put(*qk, at, value);
        ++mended;
      }
    });
    return mended;
  }

  std::int64_t mend_reading(const KnownFinding& known, const model::Reading& reading) {
    model::Oracle wrong(right_.scenario(), profile_, reading);
    std::int64_t mended = 0;
    for_each_row(known, [&](std::int64_t b, std::int64_t i, std::int64_t h) {
      if (result_.output) mended += mend_output(wrong, b, i, h) ? 1 : 0;
      if (Tensor* qk = intermediate()) mended += mend_intermediate(wrong, *qk, b, i, h) ? 1 : 0;
    });
    return mended;
  }

  /// Whether the row was mended and the reading gives another output than the contract: one beyond
  /// the bound, or one of other bits. A row that is right under both is made the exact one in any
  /// case, so that its bits do not depend on what else was asked.
  bool mend_output(model::Oracle& wrong, std::int64_t b, std::int64_t i, std::int64_t h) {
    const Scenario& s = right_.scenario();
    Tensor& output = *result_.output;
    bool breaks = false;
    for (std::int64_t l = 0; l < s.value_head_size; ++l) {
      const double observed = output_at(output, b, i, h, l);
      if (!(wrong.bound_ratio(step_, b, i, h, l, observed) <= 1)) return false;
      breaks = breaks || !(right_.bound_ratio(step_, b, i, h, l, observed) <= 1);
    }
    const model::Expected& expected = right_.expected(step_);
    const model::Expected& theirs = wrong.expected(step_);
    for (std::int64_t l = 0; l < s.value_head_size; ++l) {
      const std::int64_t at =
          ((b * output.shape[1] + i) * s.query_heads + h) * s.value_head_size + l;
      const auto index = model::element_index(s, expected, b, i, h, l);
      breaks = breaks || theirs.output[index] != expected.output[index];
      put(output, at, expected.output[index]);
    }
    return breaks;
  }

  bool mend_intermediate(model::Oracle& wrong, Tensor& qk, std::int64_t b, std::int64_t i,
                         std::int64_t h) {
    const model::QkExpected& theirs = wrong.expected_qk(step_);
    const model::QkExpected& ours = right_.expected_qk(step_);
    const std::int64_t first =
        ((b * right_.scenario().query_heads + h) * ours.queries + i) * ours.columns;
    bool breaks = false;
    for (std::int64_t j = 0; j < ours.columns; ++j) {
      const auto at = static_cast<std::size_t>(first + j);
      const double observed = element(qk, first + j);
      if (!near(observed, theirs.values[at], theirs.bound[at])) return false;
      breaks = breaks || !near(observed, ours.values[at], ours.bound[at]);
    }
    for (std::int64_t j = 0; j < ours.columns; ++j) {
      put(qk, first + j, ours.values[static_cast<std::size_t>(first + j)]);
    }
    return breaks;
  }

  model::ArithmeticProfile profile_;
  model::Oracle right_;
  std::optional<model::Oracle> earlier_;
  std::size_t step_;
  kernels::StepResult& result_;
};

class MendedSession final : public kernels::Session {
 public:
  MendedSession(std::unique_ptr<kernels::Session> inner, const kernels::SessionConfig& config,
                const kernels::Capabilities& target,
                const std::vector<const KnownFinding*>& entries, std::vector<std::int64_t>& mended)
      : inner_(std::move(inner)),
        target_(target),
        entries_(entries),
        mended_(mended),
        scenario_(scenario_of(config)) {}

  Answer<kernels::StepResult> step(const kernels::StepRequest& request) override {
    auto answer = inner_->step(request);
    auto* result = std::get_if<kernels::StepResult>(&answer);
    if (!result) return answer;
    model::Append append{request.tokens, request.queries, rollbacks_, {}};
    append.tensors.q = literal(request.query);
    append.tensors.k = literal(request.key);
    append.tensors.v = literal(request.value);
    scenario_.steps.emplace_back(std::move(append));
    const bool asks = *std::ranges::max_element(request.queries) > 0;
    if (!asks) return answer;
    if (request.mask) {
      const model::Timeline timeline(scenario_);
      const std::size_t at = scenario_.steps.size() - 1;
      std::get<model::Append>(scenario_.steps.back()).tensors.mask =
          literal_mask(*request.mask, model::literal_shapes(scenario_, timeline, at).mask);
    }
    Mending mending(target_, scenario_, *result);
    if (!mending.defined()) return answer;
    for (std::size_t i = 0; i < entries_.size(); ++i) mended_[i] += mending.mend(*entries_[i]);
    return answer;
  }

  Answer<std::monostate> rollback(std::span<const std::int64_t> tokens) override {
    auto answer = inner_->rollback(tokens);
    if (std::holds_alternative<std::monostate>(answer)) {
      scenario_.steps.emplace_back(model::Rollback{{tokens.begin(), tokens.end()}});
      ++rollbacks_;
    }
    return answer;
  }

  Answer<std::monostate> load(const kernels::LoadRequest& request) override {
    auto answer = inner_->load(request);
    if (std::holds_alternative<std::monostate>(answer)) {
      const std::int64_t tokens = *std::ranges::max_element(request.lengths);
      model::Past past{request.lengths, {}};
      past.tensors.k = literal_rows(request.rows.key, tokens);
      past.tensors.v = literal_rows(request.rows.value, tokens);
      scenario_.steps.emplace_back(std::move(past));
    }
    return answer;
  }

  Answer<kernels::CacheRows> present() override { return inner_->present(); }

 private:
  std::unique_ptr<kernels::Session> inner_;
  const kernels::Capabilities& target_;
  const std::vector<const KnownFinding*>& entries_;
  std::vector<std::int64_t>& mended_;
  Scenario scenario_;
  std::int64_t rollbacks_ = 0;
};

}  // namespace

MendedTarget::MendedTarget(kernels::Target& inner, std::vector<const KnownFinding*> entries)
    : inner_(inner), entries_(std::move(entries)), mended_(entries_.size(), 0) {}

Answer<std::unique_ptr<kernels::Session>> MendedTarget::open(const kernels::SessionConfig& config) {
  auto answer = inner_.open(config);
  auto* opened = std::get_if<std::unique_ptr<kernels::Session>>(&answer);
  if (!opened || config.op != "attention") return answer;
  return std::make_unique<MendedSession>(std::move(*opened), config, inner_.capabilities(),
                                         entries_, mended_);
}

}  // namespace kvcheck::properties
