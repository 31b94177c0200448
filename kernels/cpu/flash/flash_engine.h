// cpu-flash without tensors: the cache of one batch of sequences and the attention over it, for
// callers that own their buffers.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/cpu/cache.h"
#include "kernels/cpu/flash/flash_attention.h"
#include "kernels/target.h"

namespace kvcheck::kernels::flash {

/// One step of the engine; see StepRequest for the meaning of the counts.
struct EngineStep {
  std::span<const std::int64_t> tokens;   ///< [B]
  std::span<const std::int64_t> queries;  ///< [B]
  NewRows rows;                           ///< Keys and values as the cache stores them.
  RowSource query;                        ///< By entry, query and head.
  Storage query_type = Storage::f32;
  const MaskSource* mask = nullptr;
  bool queries_alone = false;   ///< gqa: no entry brings a token (shared KV).
  std::byte* output = nullptr;  ///< [B,S,Nq,Hv], S = most queries of any entry.
  Storage output_type = Storage::f32;
  float* maxima = nullptr;  ///< As FlashStep.
  float* totals = nullptr;
};

class FlashEngine {
 public:
  /// \pre check_config(config) is empty, the element type is not f64, the cache not fp8
  /// \param kernels in place of those that config.isa or KVCHECK_ISA choose
  /// \param shares_groups as FlashAttention; \param fault planted in the cache or the kernel
  /// \throws std::invalid_argument naming the instruction set when it cannot run here
  explicit FlashEngine(const SessionConfig& config, const Kernels* kernels = nullptr,
                       bool shares_groups = true, Fault fault = Fault::none);

  FlashEngine(const FlashEngine&) = delete;
  FlashEngine& operator=(const FlashEngine&) = delete;

  /// Appends and attends. \pre check_step found nothing wrong
  void step(const EngineStep& step);

  const SessionConfig& config() const { return config_; }
  KvCache& cache() { return cache_; }
  const KvCache& cache() const { return cache_; }
  const Kernels& kernels() const { return *kernels_; }
  std::int64_t scratch_bytes() const { return cache_.scratch_bytes() + attention_.scratch_bytes(); }

  /// Called between the attention of a step and the settling of the cache, with the attention, its
  /// step and the plans: for intermediates.
  using Inspector =
      std::function<void(FlashAttention&, const FlashStep&, std::span<const EntryPlan>)>;
  void step(const EngineStep& step, const Inspector& inspect);

 private:
  SessionConfig config_;
  Fault fault_;
  const Kernels* kernels_;
  KvCache cache_;
  FlashAttention attention_;
  float scale_;
  std::vector<float> sinks_, key_scales_, value_scales_;
  // Kept for their memory.
  std::vector<EntryRows> entries_;
  std::vector<KeyRange> ranges_;
};

/// In what a cache of this session stores rows. \pre as for FlashEngine
Storage storage_of(const SessionConfig& config);
/// \pre type is f32, f16 or bf16
Storage storage_of(ElementType type);

}  // namespace kvcheck::kernels::flash
