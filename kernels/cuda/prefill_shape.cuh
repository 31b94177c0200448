// How prefill is cut: query rows of a warp and of a block, and what lies where in shared memory.
#pragma once

#include "kernels/cuda/device.cuh"
#include "kernels/cuda/planted.h"

namespace kvcheck::kernels::device {
namespace {
namespace prefill {

constexpr unsigned kPacketBytes = 16;
constexpr unsigned kPacketLanes = 8;

/// \tparam E of queries, cache and outputs. \tparam kPaddedLanes 64, 128 or 256, no fewer than
/// head_size and value_head_size. \tparam kIsWide rows and registers for long prompts; without
/// masks and caps.
template <class E, unsigned kPaddedLanes, bool kIsWide, Fault kPlanted = Fault::none>
struct Shape {
  using Element = E;
  static constexpr Fault kFault = kPlanted;
  static constexpr bool kWide = kIsWide;
  static constexpr unsigned kLanes = kPaddedLanes;
  /// Query rows of a warp are so many times 16: each fragment of keys and values that is read from
  /// shared memory serves them all.
  static constexpr unsigned kAtoms = kWide && kLanes <= 128 ? 2 : 1;
  static constexpr unsigned kWarpRows = 16 * kAtoms;
  /// Of a block; at most, where the shape is not wide.
  static constexpr unsigned kThreads = kWide && kLanes == 256 ? 256 : 128;
  /// That registers are limited for.
  static constexpr unsigned kBlocks = kLanes == 256 ? 1 : kWide || kLanes == 128 ? 2 : 3;

  /// Keys of one tile. Tiles begin at multiples of it in absolute positions, whatever the cache.
  static constexpr unsigned kKeys = kLanes == 256 ? 32 : 64;
  static constexpr unsigned kPackets = kLanes / kPacketLanes;  ///< Of a row in shared memory.
  static constexpr unsigned kRowBytes = kLanes * 2;
  static constexpr unsigned kTileBytes = kKeys * kRowBytes;
  /// Keys, then values.
  static constexpr unsigned kStageBytes = 2 * kTileBytes;

  /// Query rows, and the output of the block at the end, lie behind the two stages.
  static constexpr unsigned kQueryAt = 2 * kStageBytes;

  static constexpr std::uint32_t rows(std::uint32_t threads) { return threads / 32 * kWarpRows; }
  static constexpr std::uint32_t shared_bytes(std::uint32_t threads) {
    return 2 * kStageBytes + rows(threads) * kRowBytes;
  }
};

/// Threads of a block, as a constant where the shape leaves no choice.
template <class S>
KV_DEVICE unsigned threads_of_block() {
  return S::kWide ? S::kThreads : block_threads();
}

/// Where a packet of a row lies in a tile. The lowest three bits of its number are turned by those
/// of the row, so that eight rows of one column lie in different banks.
template <class S>
KV_DEVICE unsigned char* packet_at(unsigned char* tile, unsigned row, unsigned packet) {
  const unsigned turned = has(S::kFault, Fault::prefill_no_swizzle) ? packet : packet ^ (row & 7);
  return tile + row * S::kRowBytes + turned * kPacketBytes;
}

}  // namespace prefill
}  // namespace
}  // namespace kvcheck::kernels::device
