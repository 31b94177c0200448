// cpu-flash, its quantised siblings and the one that multiplies in bf16.
#include "kernels/cpu/flash/cpu_flash.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "kernels/cpu/claims.h"
#include "kernels/cpu/element.h"
#include "kernels/cpu/flash/dot_kernels.h"
#include "kernels/cpu/flash/flash_engine.h"
#include "kernels/cpu/flash/flash_intermediate.h"
#include "kernels/cpu/mask_rows.h"
#include "kernels/cpu/new_rows.h"
#include "kernels/cpu/planted/input_mistakes.h"
#include "kernels/cpu/refusal.h"
#include "kernels/cpu/request_check.h"

namespace kvcheck::kernels {

using namespace std::string_view_literals;

namespace {

/// A mask tensor as the tiles read it.
class TensorMask final : public flash::MaskSource {
 public:
  explicit TensorMask(const Tensor& mask) : rows_(mask) {}

  void fill(std::int64_t entry, std::int64_t query, std::int64_t head, std::int64_t first,
            std::int64_t count, float* added) const override {
    constexpr float kHidden = -std::numeric_limits<float>::infinity();
    const MaskRow row = rows_.row(entry, head, query);
    const std::int64_t there = std::clamp<std::int64_t>(row.columns - first, 0, count);
    if (row.type == ElementType::boolean) {
      for (std::int64_t i = 0; i < there; ++i) {
        added[i] = row.cells[first + i] != std::byte{0} ? 0 : kHidden;
      }
    } else if (there > 0) {
      const auto skipped = static_cast<std::size_t>(first) * element_bytes(row.type);
      decode_row(row.type, row.cells + skipped, static_cast<std::size_t>(there), added);
    }
    std::fill(added + there, added + count, kHidden);
  }

 private:
  MaskRows rows_;
};

class CpuFlashSession final : public Session {
 public:
  /// \param kernels as FlashEngine's
  CpuFlashSession(const SessionConfig& config, const flash::Kernels* kernels, Fault fault)
      : fault_(fault),
        engine_(config, kernels, true, fault),
        config_(engine_.config()),
        operands_(config_, false, fault) {}

  Answer<StepResult> step(const StepRequest& given) override {
    KvCache& cache = engine_.cache();
    if (auto reason = check_step(config_, cache.lengths(), cache.rows(), given)) {
      return Refusal{*reason};
    }
    const auto mistaken = distort_request(fault_, config_, cache.lengths(), given);
    return taken(mistaken ? *mistaken : given);
  }

  Answer<std::monostate> rollback(std::span<const std::int64_t> tokens) override {
    if (auto reason = check_per_entry(config_, "rollback", tokens)) return Refusal{*reason};
    if (auto reason = engine_.cache().why_not_rollback(tokens)) return Refusal{*reason};
    engine_.cache().rollback(tokens);
    operands_.note_rollback();
    return std::monostate{};
  }

  Answer<std::monostate> load(const LoadRequest& request) override {
    if (auto reason = check_load(config_, request)) return Refusal{*reason};
    engine_.cache().load(request);
    return std::monostate{};
  }

  Answer<CacheRows> present() override { return engine_.cache().present(); }

 private:
  /// The result is made where it is returned.
  Answer<StepResult> taken(const StepRequest& request) {
    Answer<StepResult> answer;
    auto& result = std::get<StepResult>(answer);
    KvCache& cache = engine_.cache();
    if (request.poison) cache.poison(*request.poison);
    operands_.prepare(request, cache.lengths());
    attend_to(request, result);
    if (request.want_rows) result.rows = cache.present();
    return answer;
  }

  void attend_to(const StepRequest& request, StepResult& result) {
    const std::int64_t queries = *std::max_element(request.queries.begin(), request.queries.end());
    Tensor& output = result.output.emplace(
        Tensor::zeros(config_.element_type,
                      {config_.batch, queries, config_.query_heads, config_.value_head_size}));
    std::optional<TensorMask> mask;
    if (request.mask) mask.emplace(*request.mask);
    flash::EngineStep step;
    step.tokens = request.tokens;
    step.queries = request.queries;
    step.rows = operands_.rows();
    step.query = operands_.query_rows();
    step.query_type = flash::storage_of(operands_.query_type());
    step.mask = mask ? &*mask : nullptr;
    step.queries_alone = asks_without_tokens(config_, request);
    step.output = output.bytes.data();
    step.output_type = flash::storage_of(config_.element_type);
    if (config_.qk_output == "none"sv) return engine_.step(step);
    const auto rows = static_cast<std::size_t>(config_.batch * queries * config_.query_heads);
    std::vector<float> maxima(rows), totals(rows);
    step.maxima = maxima.data();
    step.totals = totals.data();
    engine_.step(step, [&](flash::FlashAttention& attention, const flash::FlashStep& attended,
                           std::span<const EntryPlan> plans) {
      result.qk = flash::intermediate_of(config_, engine_.kernels(), attention, attended, plans);
    });
  }

  Fault fault_;
  flash::FlashEngine engine_;
  const SessionConfig& config_;
  StepRows<float> operands_;
};

Capabilities gqa_capabilities() {
  Capabilities can = gqa_claims();
  can.features.insert({"split_bits", "window_bits", "capacity_bits", "threads_bits", "isa_bits",
                       "company_bits", "rollback_bits", "repeat_bits", "nan_safe"});
  for (const flash::Kernels* kernels : flash::kernels_here()) can.isas.push_back(kernels->isa);
  Arithmetic& arithmetic = can.arithmetic;
  arithmetic.accumulator_roundoff = 0x1p-24;
  arithmetic.exp_error = 0x1p-23;
  arithmetic.exp_flushes = true;
  arithmetic.tanh_error = 0x1p-21;
  arithmetic.dot_ways = 8;
  arithmetic.value_block = flash::kChunk;
  // The running maximum is looked at once in a tile, and partial results of chunks are rescaled
  // when they are merged: in all no more often than there are tiles.
  arithmetic.rescale_block = flash::kTile;
  arithmetic.max_rescales = std::int64_t{1} << 30;
  arithmetic.splits = 2;  // A sink is merged as one more partial result.
  return can;
}

Capabilities plain_capabilities() {
  Capabilities can = gqa_capabilities();
  can.name = "cpu-flash";
  add_attention_claims(can);
  return can;
}

Capabilities quantised_capabilities(std::string_view kind) {
  Capabilities can = gqa_capabilities();
  can.name = kind == "int8" ? "cpu-flash-q8" : "cpu-flash-q4";
  claim_quantised_only(can, kind);
  // Scales of keys are multiplied onto the query, scales of values onto the output.
  can.arithmetic.dequantise_roundings = 1;
  return can;
}

Capabilities dot_capabilities() {
  Capabilities can = plain_capabilities();
  can.name = "cpu-flash-dot";
  can.element_types = {"bf16"};
  // Norms and turns give queries that are no bf16 numbers; there is one instruction set only.
  for (const char* feature : {"rotary", "qk_norm", "isa_bits"}) can.features.erase(feature);
  can.isas.clear();
  Arithmetic& arithmetic = can.arithmetic;
  // A dot product of pairs is two fused multiply-adds in f32, one after the other, so that a logit
  // is one chain over the lanes, and P.V and the row sum meet one rounding for each key.
  arithmetic.exact_products = true;
  arithmetic.exp_error = 0x1p-17;
  arithmetic.dot_ways = 1;
  arithmetic.probability_roundoff = 0x1p-8;
  arithmetic.sums_stored_weights = true;
  return can;
}

class CpuFlash final : public Target {
 public:
  explicit CpuFlash(Capabilities can, const flash::Kernels* kernels = nullptr,
                    std::string problem = "")
      : capabilities_(std::move(can)), kernels_(kernels), problem_(std::move(problem)) {}
  CpuFlash(Capabilities can, Fault fault) : capabilities_(std::move(can)), fault_(fault) {}

  const Capabilities& capabilities() const override { return capabilities_; }

  Answer<std::unique_ptr<Session>> open(const SessionConfig& config) override {
    if (!problem_.empty()) return Refusal{fmt::format("{} {}", capabilities_.name, problem_)};
    if (auto reason = check_config(config)) return Refusal{*reason};
    if (auto reason = check_claims(capabilities_, config)) return Refusal{*reason};
    try {
      if (fault_ == Fault::none) {
        return std::make_unique<CpuFlashSession>(config, kernels_, fault_);
      }
      SessionConfig taken = config;
      distort_config(fault_, taken);
      return std::make_unique<CpuFlashSession>(taken, kernels_, fault_);
    } catch (const std::invalid_argument& wrong) {
      return Refusal{wrong.what()};  // KVCHECK_ISA
    }
  }

 private:
  Capabilities capabilities_;
  const flash::Kernels* kernels_ = nullptr;
  Fault fault_ = Fault::none;
  std::string problem_;  // Why it cannot run here.
};

}  // namespace

std::unique_ptr<Target> make_cpu_flash() {
  return std::make_unique<CpuFlash>(plain_capabilities());
}

std::unique_ptr<Target> make_cpu_flash_dot() {
  return std::make_unique<CpuFlash>(dot_capabilities(), flash::dot_kernels(),
                                    cpu_flash_dot_problem());
}

std::string cpu_flash_dot_problem() {
  const char* const asked = std::getenv("KVCHECK_ISA");
  if (asked != nullptr && *asked != '\0' && asked != std::string_view("avx512")) {
    return fmt::format("cannot run here: KVCHECK_ISA is {}, and it needs avx512; unset it", asked);
  }
  if (flash::dot_kernels() != nullptr) return "";
  return "cannot run here: this processor has no AVX512_BF16; cpu-flash takes bf16 caches on any";
}

std::unique_ptr<Target> make_cpu_flash_quantised(std::string_view kind) {
  if (kind != "int8" && kind != "int4") return nullptr;
  return std::make_unique<CpuFlash>(quantised_capabilities(kind));
}

std::unique_ptr<Target> make_cpu_flash(Fault fault, std::string_view kind, std::string name) {
  Capabilities can = kind == "none" ? plain_capabilities() : quantised_capabilities(kind);
  can.name = std::move(name);
  return std::make_unique<CpuFlash>(std::move(can), fault);
}

}  // namespace kvcheck::kernels
