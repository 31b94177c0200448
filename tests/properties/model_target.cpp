// Answers from the oracle and from the operands.
#include "tests/properties/model_target.h"

#include "model/oracle.h"
#include "model/parameters.h"
#include "model/quantisation.h"
#include "properties/convert.h"
#include "properties/tensor_writer.h"

namespace kvcheck::properties {
namespace {

using kernels::Answer;
using kernels::Tensor;

class ModelSession final : public kernels::Session {
 public:
  ModelSession(const model::Scenario& scenario, Mistake mistake)
      : oracle_(scenario, arithmetic_profile(all_capabilities(), scenario)),
        operands_(oracle_.scenario(), oracle_.timeline(), oracle_.fill(), 0x1p-24, right_),
        mistake_(std::move(mistake)) {}

  Answer<kernels::StepResult> step(const kernels::StepRequest&) override {
    const model::Scenario& s = oracle_.scenario();
    kernels::StepResult result;
    const model::Expected& expected = oracle_.expected(at_);
    result.output = Tensor::zeros(to_kernel(s.element_type),
                                  {s.batch, expected.queries, s.query_heads, s.value_head_size});
    TensorWriter output(*result.output);
    for (const double value : expected.output) output.put(value);
    if (s.qk_output != model::QkOutput::none) {
      const model::QkExpected& qk = oracle_.expected_qk(at_);
      result.qk = Tensor::zeros(to_kernel(s.element_type),
                                {s.batch, s.query_heads, qk.queries, qk.columns});
      TensorWriter writer(*result.qk);
      for (const double value : qk.values) writer.put(value);
    }
    result.rows = rows();
    if (mistake_) mistake_(at_, result);
    ++at_;
    return result;
  }
  Answer<std::monostate> rollback(std::span<const std::int64_t>) override {
    ++at_;
    return std::monostate{};
  }
  Answer<std::monostate> load(const kernels::LoadRequest&) override {
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
  /// Codes are what the operands read back as, over the scale: exact in double.
  void store(model::CacheSide side, std::int64_t kv_head, std::span<const double> read,
             std::span<std::byte> bytes) const {
    const model::Scenario& s = oracle_.scenario();
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
    const model::Scenario& s = oracle_.scenario();
    const model::Timeline& timeline = oracle_.timeline();
    const std::int64_t count = timeline.buffer_rows();
    kernels::CacheRows result;
    const auto make = [&](std::int64_t lanes) {
      return Tensor::zeros(storage_type(s), {s.batch, s.kv_heads, count, stored_lanes(s, lanes)});
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

  void store_row(const std::vector<double>& lanes, std::int64_t head, std::int64_t count,
                 model::CacheSide side, std::int64_t entry, std::int64_t row,
                 Tensor& tensor) const {
    const auto width =
        static_cast<std::size_t>(tensor.shape[3]) * kernels::element_bytes(tensor.type);
    const auto at =
        static_cast<std::size_t>((entry * tensor.shape[1] + head) * tensor.shape[2] + row);
    store(side, head,
          std::span(lanes).subspan(static_cast<std::size_t>(head * count),
                                   static_cast<std::size_t>(count)),
          std::span(tensor.bytes).subspan(at * width, width));
  }

  model::Oracle oracle_;
  model::Reading right_;
  model::Operands operands_;
  Mistake mistake_;
  std::size_t at_ = 0;
};

class ModelTarget final : public kernels::Target {
 public:
  ModelTarget(const model::Scenario& scenario, Mistake mistake)
      : scenario_(scenario), mistake_(std::move(mistake)), claims_(all_capabilities()) {}
  const kernels::Capabilities& capabilities() const override { return claims_; }
  Answer<std::unique_ptr<kernels::Session>> open(const kernels::SessionConfig&) override {
    return std::make_unique<ModelSession>(scenario_, mistake_);
  }

 private:
  model::Scenario scenario_;
  Mistake mistake_;
  kernels::Capabilities claims_;
};

}  // namespace

kernels::Capabilities all_capabilities() {
  kernels::Capabilities c;
  c.name = "model";
  c.operators = {"gqa", "attention"};
  c.opsets = {23, 24, 25};
  c.element_types = {"f32", "f16", "bf16"};
  c.layouts = {"full", "block", "min_overflow"};
  c.features = {"mask_boolean",     "mask_additive",
                "nonpad_kv_seqlen", "queries_differ",
                "batched_chunks",   "ragged_prompt",
                "idle_entries",     "ragged_prompt_block",
                "shared_kv",        "empty_append",
                "bidirectional",    "empty_window",
                "attention_bias",   "attention_window",
                "mask_broadcast",   "short_mask",
                "right_window",     "softcap",
                "smooth_softmax",   "head_sink",
                "rotary",           "qk_norm",
                "qk_output",        "softmax_precision",
                "packed_qkv",       "input_rank_3",
                "cache_int8",       "cache_int4",
                "cache_fp8",        "load",
                "queryless_append", "rollback",
                "checks_rollback"};
  c.features.insert({"mask_one_row", "bidirectional_chunks", "batched_questions"});
  return c;
}

std::unique_ptr<kernels::Target> make_model_target(const model::Scenario& scenario,
                                                   Mistake mistake) {
  return std::make_unique<ModelTarget>(scenario, std::move(mistake));
}

}  // namespace kvcheck::properties
