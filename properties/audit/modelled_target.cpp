// Answers from the oracle and from the operands.
#include "properties/audit/modelled_target.h"

#include <algorithm>
#include <optional>

#include "model/oracle.h"
#include "model/parameters.h"
#include "model/quantisation.h"
#include "properties/convert.h"
#include "properties/tensor_writer.h"
#include "properties/told_target.h"

namespace kvcheck::properties {
namespace {

using kernels::Answer;
using kernels::Tensor;

/// Every fifth position, so that a prompt of a few tokens has one.
constexpr std::int64_t kEvery = 5;
constexpr std::int64_t kFirst = 3;

/// Keys and values are stored by the reading, unless they would be no codes.
model::Reading stored_reading(const model::Reading& reading, bool one_row) {
  model::Reading stored = one_row ? model::Reading{} : reading;
  stored.without_quantisation = false;
  return stored;
}

class ModelledSession final : public kernels::Session {
 public:
  ModelledSession(const model::Scenario& scenario, const kernels::Capabilities& claims,
                  const model::Reading* reading, bool one_row)
      : stored_(reading ? stored_reading(*reading, one_row) : model::Reading{}),
        right_(scenario, arithmetic_profile(claims, scenario)),
        operands_(right_.scenario(), right_.timeline(), right_.fill(), 0x1p-24, stored_),
        one_row_(one_row) {
    if (reading) wrong_.emplace(scenario, arithmetic_profile(claims, scenario), *reading);
  }

  Answer<kernels::StepResult> step(const kernels::StepRequest& request) override {
    const model::Scenario& s = right_.scenario();
    const auto* told = next<model::Append>();
    if (!told || told->tokens != request.tokens || told->queries != request.queries) return other();
    kernels::StepResult result;
    result.output = output();
    if (s.qk_output != model::QkOutput::none) result.qk = intermediate();
    if (request.want_rows) result.rows = rows();
    ++at_;
    return result;
  }

  Answer<std::monostate> rollback(std::span<const std::int64_t> tokens) override {
    const auto* told = next<model::Rollback>();
    if (!told || !std::ranges::equal(told->tokens, tokens)) return other();
    const model::TimelineStep& state = right_.timeline().steps()[at_];
    if (!state.defined) return kernels::Refusal{state.undefined_reason};
    ++at_;
    return std::monostate{};
  }

  Answer<std::monostate> load(const kernels::LoadRequest& request) override {
    const auto* told = next<model::Past>();
    if (!told || told->tokens != request.lengths) return other();
    ++at_;
    return std::monostate{};
  }

  Answer<kernels::CacheRows> present() override {
    --at_;
    auto answer = rows();
    ++at_;
    return answer;
  }

 private:
  /// The step that was told to come next, if it is of that kind.
  template <class Step>
  const Step* next() const {
    const auto& steps = right_.scenario().steps;
    return at_ < steps.size() ? std::get_if<Step>(&steps[at_]) : nullptr;
  }
  /// A valid scenario holds nothing that must be refused, so what it does not hold is refused.
  static kernels::Refusal other() { return {"the scenario that was told has another step here"}; }

  bool by_reading(std::int64_t entry, std::int64_t query, std::int64_t head) const {
    if (!wrong_) return false;
    if (!one_row_) return true;
    const model::Scenario& s = right_.scenario();
    const auto& around = right_.timeline().steps()[at_].entries[static_cast<std::size_t>(entry)];
    const std::int64_t position = around.origin.value + query;  // Below 0 before the first key.
    return entry == s.batch - 1 && head == s.query_heads / 2 &&
           (position % kEvery + kEvery) % kEvery == kFirst;
  }

  std::int64_t queries_of_step() const {
    std::int64_t most = 0;
    for (const auto& entry : right_.timeline().steps()[at_].entries) {
      most = std::max(most, entry.queries);
    }
    return most;
  }

  /// The contract's answers are not worked out where the reading answers every query.
  Tensor output() {
    const model::Scenario& s = right_.scenario();
    const model::Expected* right = wrong_ && !one_row_ ? nullptr : &right_.expected(at_);
    const model::Expected* other = wrong_ ? &wrong_->expected(at_) : nullptr;
    const std::int64_t queries = queries_of_step();
    Tensor tensor = Tensor::zeros(to_kernel(s.element_type),
                                  {s.batch, queries, s.query_heads, s.value_head_size});
    TensorWriter writer(tensor);
    std::size_t at = 0;
    for (std::int64_t b = 0; b < s.batch; ++b) {
      for (std::int64_t i = 0; i < queries; ++i) {
        for (std::int64_t h = 0; h < s.query_heads; ++h) {
          const auto& answer = by_reading(b, i, h) ? *other : *right;
          for (std::int64_t c = 0; c < s.value_head_size; ++c) writer.put(answer.output[at++]);
        }
      }
    }
    return tensor;
  }

  Tensor intermediate() {
    const model::Scenario& s = right_.scenario();
    const model::QkExpected* right = wrong_ && !one_row_ ? nullptr : &right_.expected_qk(at_);
    const model::QkExpected* other = wrong_ ? &wrong_->expected_qk(at_) : nullptr;
    const std::int64_t columns = (right != nullptr ? right : other)->columns;
    const std::int64_t queries = queries_of_step();
    Tensor tensor =
        Tensor::zeros(to_kernel(s.element_type), {s.batch, s.query_heads, queries, columns});
    TensorWriter writer(tensor);
    std::size_t at = 0;
    for (std::int64_t b = 0; b < s.batch; ++b) {
      for (std::int64_t h = 0; h < s.query_heads; ++h) {
        for (std::int64_t i = 0; i < queries; ++i) {
          const auto& answer = by_reading(b, i, h) ? *other : *right;
          for (std::int64_t j = 0; j < columns; ++j) writer.put(answer.values[at++]);
        }
      }
    }
    return tensor;
  }

  /// Codes are what the operands read back as, over the scale: exact in double.
  void store(model::CacheSide side, std::int64_t kv_head, std::span<const double> read,
             std::span<std::byte> bytes) const {
    const model::Scenario& s = right_.scenario();
    const auto kind = s.cache.quantisation.kind;
    std::vector<double> codes(read.begin(), read.end());
    if (kind == model::QuantisationKind::none) {
      const std::size_t width = model::element_bytes(s.element_type);
      for (std::size_t c = 0; c < codes.size(); ++c) {
        model::store_element(s.element_type, codes[c], bytes.data() + c * width);
      }
      return;
    }
    for (std::size_t c = 0; c < codes.size(); ++c) {
      codes[c] /=
          static_cast<double>(model::cache_scale(s, side, kv_head, static_cast<std::int64_t>(c)));
    }
    model::store_row(kind, codes, bytes);
  }

  kernels::CacheRows rows() {
    const model::Scenario& s = right_.scenario();
    const model::Timeline& timeline = right_.timeline();
    kernels::CacheRows result;
    const auto make = [&](std::int64_t lanes) {
      return Tensor::zeros(storage_type(s),
                           {s.batch, s.kv_heads, timeline.buffer_rows(), stored_lanes(s, lanes)});
    };
    result.key = make(s.head_size);
    result.value = make(s.value_head_size);
    for (std::int64_t b = 0; b < s.batch; ++b) {
      const auto& entry = timeline.steps()[at_].entries[static_cast<std::size_t>(b)];
      for (std::int64_t r = 0; r < entry.resident; ++r) {
        const model::Position position{entry.first_position.value + r};
        const auto written = timeline.written(at_, b, {&position, 1}).front();
        const auto& read = operands_.stored({b, {position, written.generation}, written.step});
        for (std::int64_t h = 0; h < s.kv_heads; ++h) {
          store_row(read.keys, h, s.head_size, model::CacheSide::key, b, r, result.key);
          store_row(read.values, h, s.value_head_size, model::CacheSide::value, b, r, result.value);
        }
      }
    }
    return result;
  }

  void store_row(std::span<const double> lanes, std::int64_t head, std::int64_t count,
                 model::CacheSide side, std::int64_t entry, std::int64_t row,
                 Tensor& tensor) const {
    const auto width =
        static_cast<std::size_t>(tensor.shape[3]) * kernels::element_bytes(tensor.type);
    const auto at =
        static_cast<std::size_t>((entry * tensor.shape[1] + head) * tensor.shape[2] + row);
    store(side, head,
          lanes.subspan(static_cast<std::size_t>(head * count), static_cast<std::size_t>(count)),
          std::span(tensor.bytes).subspan(at * width, width));
  }

  model::Reading stored_;
  model::Oracle right_;
  std::optional<model::Oracle> wrong_;
  model::Operands operands_;
  bool one_row_;
  std::size_t at_ = 0;
};

class ModelledTarget final : public ToldTarget {
 public:
  ModelledTarget(const model::WrongModel* reading, bool one_row)
      : reading_(reading), one_row_(one_row), claims_(modelled_capabilities()) {
    if (reading) claims_.name += "+" + std::string(reading->name);
  }
  const kernels::Capabilities& capabilities() const override { return claims_; }
  void tell(const model::Scenario& scenario) override { scenario_ = scenario; }
  Answer<std::unique_ptr<kernels::Session>> open(const kernels::SessionConfig&) override {
    if (!scenario_) return kernels::Refusal{"no scenario was told"};
    const bool concerned = reading_ && reading_->concerns(*scenario_);
    return std::make_unique<ModelledSession>(*scenario_, claims_,
                                             concerned ? &reading_->reading : nullptr, one_row_);
  }

 private:
  const model::WrongModel* reading_;
  bool one_row_;
  kernels::Capabilities claims_;
  std::optional<model::Scenario> scenario_;
};

}  // namespace

kernels::Capabilities modelled_capabilities() {
  kernels::Capabilities c;
  c.name = "model";
  c.operators = {"gqa", "attention"};
  c.opsets = {23, 24, 25};
  c.element_types = {"f32", "f16", "bf16"};
  c.layouts = {"full", "block", "min_overflow"};
  c.features = {"mask_boolean",
                "mask_additive",
                "nonpad_kv_seqlen",
                "queries_differ",
                "batched_chunks",
                "ragged_prompt",
                "idle_entries",
                "ragged_prompt_block",
                "shared_kv",
                "empty_append",
                "bidirectional",
                "empty_window",
                "attention_bias",
                "attention_window",
                "mask_broadcast",
                "short_mask",
                "right_window",
                "softcap",
                "smooth_softmax",
                "head_sink",
                "rotary",
                "qk_norm",
                "qk_output",
                "softmax_precision",
                "packed_qkv",
                "input_rank_3",
                "cache_int8",
                "cache_int4",
                "cache_fp8",
                "load",
                "mask_one_row",
                "bidirectional_chunks",
                "batched_questions",
                "queryless_append",
                "rollback",
                "checks_rollback",
                "separate_buffers",
                "split_bits",
                "window_bits",
                "capacity_bits",
                "threads_bits",
                "company_bits",
                "rollback_bits",
                "repeat_bits",
                "nan_safe"};
  return c;
}

std::unique_ptr<kernels::Target> make_modelled_target(const model::WrongModel* reading,
                                                      bool one_row) {
  return std::make_unique<ModelledTarget>(reading, one_row);
}

}  // namespace kvcheck::properties
