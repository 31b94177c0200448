// cpu-naive: the plain CPU target.
#include "kernels/cpu/cpu_naive.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cpu/cache.h"
#include "kernels/cpu/faults.h"
#include "kernels/cpu/naive_attention.h"
#include "kernels/cpu/request_check.h"

namespace kvcheck::kernels {
namespace {

class CpuNaiveSession final : public Session {
 public:
  CpuNaiveSession(const SessionConfig& config, Fault fault, bool descending)
      : config_(config), fault_(fault), descending_(descending), cache_(config, fault) {}

  Answer<StepResult> step(const StepRequest& request) override {
    if (auto reason = check_step(config_, cache_.lengths(), cache_.rows(), request)) {
      return Refusal{*reason};
    }
    if (request.poison) cache_.poison(*request.poison);
    const std::vector<EntryPlan> plans = cache_.plan(request.tokens);
    cache_.place(plans, request.key, request.value);
    const bool settles_early = fault_ == Fault::staging_skipped;
    if (settles_early) cache_.settle(plans);
    StepResult result;
    result.output = attend_to(request, plans);
    if (!settles_early) cache_.settle(plans);
    if (request.want_rows) result.rows = cache_.present();
    return result;
  }

  Answer<std::monostate> rollback(std::span<const std::int64_t> tokens) override {
    if (auto reason = check_per_entry(config_, "rollback", tokens)) return Refusal{*reason};
    if (auto reason = cache_.why_not_rollback(tokens)) return Refusal{*reason};
    cache_.rollback(tokens);
    return std::monostate{};
  }

  Answer<std::monostate> load(const LoadRequest& request) override {
    if (auto reason = check_load(config_, request)) return Refusal{*reason};
    cache_.load(request);
    return std::monostate{};
  }

  Answer<CacheRows> present() override { return cache_.present(); }

 private:
  Tensor attend_to(const StepRequest& request, const std::vector<EntryPlan>& plans) const {
    std::vector<EntryRows> rows;
    for (std::size_t b = 0; b < plans.size(); ++b) {
      rows.push_back(cache_.rows_of(static_cast<std::int64_t>(b), plans[b]));
    }
    return attend({config_, request, plans, rows, fault_, descending_});
  }

  SessionConfig config_;
  Fault fault_;
  bool descending_;
  KvCache cache_;
};

Capabilities capabilities_of_cpu_naive() {
  Capabilities can;
  can.name = "cpu-naive";
  can.version = KVCHECK_VERSION;
  can.operators = {"gqa", "attention"};
  can.opsets = {23, 24};
  can.element_types = {"f32", "f16", "bf16", "f64"};
  can.layouts = {"full", "block"};
  can.features = {"mask_boolean",     "mask_additive",  "nonpad_kv_seqlen", "queries_differ",
                  "separate_buffers", "batched_chunks", "ragged_prompt",    "ragged_prompt_block",
                  "idle_entries",     "load",           "queryless_append", "rollback",
                  "checks_rollback",  "split_bits",     "window_bits",      "capacity_bits",
                  "company_bits",     "rollback_bits",  "repeat_bits",      "nan_safe"};
  // f32 sums, std::exp in f32 and a two-pass softmax: what the defaults say, spelled out.
  can.arithmetic.accumulator_roundoff = 0x1p-24;
  can.arithmetic.exp_error = 0x1p-23;
  can.arithmetic.max_rescales = 0;
  return can;
}

class CpuNaive final : public Target {
 public:
  explicit CpuNaive(Fault fault = Fault::none, std::string_view fault_name = {})
      : fault_(fault), capabilities_(capabilities_of_cpu_naive()) {
    if (fault != Fault::none) capabilities_.name += "+" + std::string(fault_name);
  }

  const Capabilities& capabilities() const override { return capabilities_; }

  Answer<std::unique_ptr<Session>> open(const SessionConfig& config) override {
    if (auto reason = check_config(config)) return Refusal{*reason};
    const bool descending = fault_ == Fault::sum_order_varies && opened_++ % 2 == 1;
    return std::make_unique<CpuNaiveSession>(config, fault_, descending);
  }

 private:
  Fault fault_;
  Capabilities capabilities_;
  unsigned opened_ = 0;
};

}  // namespace

std::unique_ptr<Target> make_cpu_naive() { return std::make_unique<CpuNaive>(); }

std::unique_ptr<Target> make_cpu_naive(std::string_view fault) {
  const std::optional<Fault> planted = cpu_naive_fault(fault);
  return planted ? std::make_unique<CpuNaive>(*planted, fault) : nullptr;
}

}  // namespace kvcheck::kernels
