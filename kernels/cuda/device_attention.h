// Attention of one step on a machine: what the kernels are given, which of them runs, and how its
// launch is cut.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "kernels/cuda/device_cache.h"
#include "kernels/cuda/kernel_table.h"
#include "kernels/cuda/machine.h"
#include "kernels/cuda/parameters.h"
#include "kernels/target.h"

namespace kvcheck::kernels::device {

enum class AttentionKernel { unfused, decode, decode_matrix, prefill };

/// The name that LaunchConfig::kernel has for it.
std::string_view to_string(AttentionKernel kernel);

/// The kernel for an entry that asks `queries` queries: the one asked for where it takes them, else
/// the fastest that does. It does not depend on the other entries, nor on the cache.
AttentionKernel chosen_kernel(const SessionConfig& config, const KernelTable& kernels,
                              std::int64_t queries);

/// Positions [first * positions, (first + count) * positions) in splits.
struct Splits {
  std::int64_t positions = 0, first = 0, count = 1;
};

/// Splits of all that the queries of `entries` may see, of `positions` each, rounded up to what the
/// kernels take; 0 = kSplitPositions. Where that makes more than kMostSplits, longer ones: from 33
/// million positions on.
Splits splits_of(const SessionConfig& config, std::span<const EntryView> entries,
                 std::int64_t positions);
/// Enough splits for every multiprocessor at 8 KV heads and 8192 keys; partial results come to 3 %
/// of the rows at 8 query heads a KV head.
inline constexpr std::int64_t kSplitPositions = 512;
/// Below what the y axis of a grid takes, with room for splits that are cut at both ends.
inline constexpr std::int64_t kMostSplits = 65000;

/// Launches attention for a step whose rows are in place.
class DeviceAttention {
 public:
  /// \pre check_config(config) is empty. Refers to all three.
  DeviceAttention(Machine& machine, const SessionConfig& config, const DeviceCache& cache);

  /// \pre check_step found nothing wrong, DeviceCache::place has been called
  void launch(const StepRequest& request, std::span<const EntryPlan> plans);
  /// The outputs of the launch. \pre it has ended
  Tensor output() const;
  /// Where an element of the outputs is until release_step(); null where there is none.
  const std::byte* address_of(const ElementPlace& place) const;
  void release_step();

 private:
  std::vector<EntryView> views(const StepRequest& request, std::span<const EntryPlan> plans) const;
  AttentionParameters parameters_of(const StepRequest& request);
  void add_mask(const StepRequest& request, AttentionParameters& parameters);
  /// Launches `kernel` for the entries that it was chosen for.
  void launch_kernel(AttentionKernel kernel, std::span<const AttentionKernel> chosen,
                     std::vector<EntryView> entries, AttentionParameters parameters);
  void add_scratch(AttentionKernel kernel, std::span<const EntryView> entries,
                   AttentionParameters& parameters);
  DeviceBuffer& keep(DeviceBuffer buffer);

  Machine& machine_;
  const SessionConfig& config_;
  const DeviceCache& cache_;
  DeviceBuffer sinks_;  // f32, one for each query head.
  std::int64_t queries_ = 0;
  DeviceBuffer output_;
  std::vector<DeviceBuffer> in_use_;
};

}  // namespace kvcheck::kernels::device
