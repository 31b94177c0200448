// cpu-naive and its quantised siblings.
#include "kernels/cpu/naive/cpu_naive.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cpu/cache.h"
#include "kernels/cpu/claims.h"
#include "kernels/cpu/naive/naive_attention.h"
#include "kernels/cpu/new_rows.h"
#include "kernels/cpu/planted/faults.h"
#include "kernels/cpu/planted/mistakes.h"
#include "kernels/cpu/planted/planted_target.h"
#include "kernels/cpu/request_check.h"

namespace kvcheck::kernels {
namespace {

/// Real = type of the arithmetic.
template <class Real>
class CpuNaiveSession final : public Session {
 public:
  CpuNaiveSession(const SessionConfig& config, Fault fault, bool descending)
      : config_(config),
        fault_(fault),
        descending_(descending),
        operands_(config_, true, fault),
        cache_(config_, fault) {}

  Answer<StepResult> step(const StepRequest& given) override {
    if (auto reason = check_step(config_, cache_.lengths(), cache_.rows(), given)) {
      return Refusal{*reason};
    }
    const auto mistaken = distort_request(fault_, config_, cache_.lengths(), given);
    const StepRequest& request = mistaken ? *mistaken : given;
    if (request.poison) cache_.poison(*request.poison);
    operands_.prepare(request, cache_.lengths());
    const std::span<const EntryPlan> plans = cache_.plan(request.tokens);
    cache_.place(operands_.rows());
    const bool settles_early = fault_ == Fault::staging_skipped;
    if (settles_early) cache_.settle();
    StepResult result = attend_to(request, plans);
    if (!settles_early) cache_.settle();
    if (request.want_rows) result.rows = cache_.present();
    return result;
  }

  Answer<std::monostate> rollback(std::span<const std::int64_t> tokens) override {
    if (auto reason = check_per_entry(config_, "rollback", tokens)) return Refusal{*reason};
    if (auto reason = cache_.why_not_rollback(tokens)) return Refusal{*reason};
    cache_.rollback(tokens);
    operands_.note_rollback();
    return std::monostate{};
  }

  Answer<std::monostate> load(const LoadRequest& request) override {
    if (auto reason = check_load(config_, request)) return Refusal{*reason};
    cache_.load(request);
    return std::monostate{};
  }

  Answer<CacheRows> present() override { return cache_.present(); }

 private:
  StepResult attend_to(const StepRequest& request, std::span<const EntryPlan> plans) {
    rows_.clear();
    for (std::int64_t b = 0; b < config_.batch; ++b) rows_.push_back(cache_.rows_of(b));
    AttentionAnswer answer =
        attend<Real>({config_, request, plans, rows_, fault_, descending_}, operands_);
    StepResult result;
    result.output = std::move(answer.output);
    result.qk = std::move(answer.qk);
    return result;
  }

  SessionConfig config_;
  Fault fault_;
  bool descending_;
  StepRows<Real> operands_;
  KvCache cache_;
  std::vector<EntryRows> rows_;  // Kept for its memory.
};

Capabilities gqa_capabilities() {
  Capabilities can = gqa_claims();
  can.features.insert({"split_bits", "window_bits", "capacity_bits", "threads_bits", "company_bits",
                       "rollback_bits", "repeat_bits", "nan_safe"});
  // f32 sums, std::exp in f32 and a two-pass softmax: what the defaults say, spelled out.
  can.arithmetic.accumulator_roundoff = 0x1p-24;
  can.arithmetic.exp_error = 0x1p-23;
  can.arithmetic.tanh_error = 0x1p-21;
  can.arithmetic.max_rescales = 0;
  return can;
}

Capabilities plain_capabilities() {
  Capabilities can = gqa_capabilities();
  can.name = "cpu-naive";
  add_attention_claims(can);
  can.element_types.insert("f64");
  return can;
}

Capabilities quantised_capabilities(std::string_view kind) {
  Capabilities can = gqa_capabilities();
  can.name = kind == "int8" ? "cpu-naive-q8" : "cpu-naive-q4";
  claim_quantised_only(can, kind);
  // A code is multiplied by its scale before the products.
  can.arithmetic.dequantise_roundings = 1;
  return can;
}

class CpuNaive final : public Target {
 public:
  explicit CpuNaive(Capabilities can, Fault fault = Fault::none)
      : fault_(fault), capabilities_(std::move(can)) {}

  const Capabilities& capabilities() const override { return capabilities_; }

  Answer<std::unique_ptr<Session>> open(const SessionConfig& config) override {
    if (auto reason = check_config(config)) return Refusal{*reason};
    if (auto reason = check_claims(capabilities_, config)) return Refusal{*reason};
    const bool descending = fault_ == Fault::sum_order_varies && opened_++ % 2 == 1;
    // A wider softmax_precision widens all of the arithmetic; f32 is as wide as the others ask.
    const bool wide =
        config.element_type == ElementType::f64 || config.softmax_precision == ElementType::f64;
    SessionConfig taken = config;
    distort_config(fault_, taken);
    if (wide) return std::make_unique<CpuNaiveSession<double>>(taken, fault_, descending);
    return std::make_unique<CpuNaiveSession<float>>(taken, fault_, descending);
  }

 private:
  Fault fault_;
  Capabilities capabilities_;
  unsigned opened_ = 0;
};

}  // namespace

std::unique_ptr<Target> make_cpu_naive() {
  return std::make_unique<CpuNaive>(plain_capabilities());
}

std::unique_ptr<Target> make_cpu_naive_quantised(std::string_view kind) {
  if (kind != "int8" && kind != "int4") return nullptr;
  return std::make_unique<CpuNaive>(quantised_capabilities(kind));
}

std::unique_ptr<Target> make_cpu_naive(std::string_view fault) {
  return make_planted("cpu-naive", fault);
}

std::unique_ptr<Target> make_cpu_naive(Fault fault, std::string_view kind, std::string name) {
  Capabilities can = kind == "none" ? plain_capabilities() : quantised_capabilities(kind);
  can.name = std::move(name);
  return std::make_unique<CpuNaive>(std::move(can), fault);
}

}  // namespace kvcheck::kernels
