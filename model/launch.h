// How a target that runs kernels on a device is to make its launches. No answer depends on it.
#pragma once

#include <cstdint>
#include <string_view>

namespace kvcheck::model {

/// The order in which simulated threads of a device run; see kernels/simt/schedule.h.
enum class LaunchOrder { lockstep, random, reverse, priority, starve };

/// Which kernel is to compute attention; any = the target's own choice. Where the one that is asked
/// for does not take a step, the target chooses.
enum class LaunchKernel { any, unfused, decode, decode_matrix, prefill };

struct LaunchSpec {
  LaunchOrder order = LaunchOrder::lockstep;
  std::uint64_t seed = 0;  ///< Of the order.
  LaunchKernel kernel = LaunchKernel::any;
  std::int64_t threads = 0;          ///< Of a block, a multiple of 32; 0 = the target's choice.
  std::int64_t split_positions = 0;  ///< Keys that one block reads; 0 = the target's choice.
  friend bool operator==(const LaunchSpec&, const LaunchSpec&) = default;
};

inline constexpr std::int64_t kMaxBlockThreads = 1024;
inline constexpr std::int64_t kWarpThreads = 32;

std::string_view to_string(LaunchOrder order);
std::string_view to_string(LaunchKernel kernel);

}  // namespace kvcheck::model
