// Kernels of one warp whose memory transactions can be counted by hand.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/simt/launch.h"

namespace kvcheck::kernels::simt {

/// Memory that each of these kernels gets, aligned to 256 bytes.
struct CountedBuffers {
  const std::byte* from;
  std::byte* to;
};
inline constexpr std::size_t kCountedBytes = 8192;

struct CountedKernel {
  std::string_view name;
  void (*run)(SimtQueue& queue, const CountedBuffers& buffers);
  Counters expected;
};
std::span<const CountedKernel> counted_kernels();

}  // namespace kvcheck::kernels::simt
