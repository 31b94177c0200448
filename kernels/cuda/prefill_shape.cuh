// How prefill is cut: query rows of a warp and of a block, and what lies where in shared memory.
#pragma once

#include "kernels/cuda/device.cuh"
#include "kernels/cuda/planted.h"

namespace kvcheck::kernels::device {
namespace {
namespace prefill {

/// Keys of one tile. Tiles begin at multiples of it in absolute positions, whatever the cache.
constexpr unsigned kKeys = 64;
constexpr unsigned kPacketBytes = 16;
constexpr unsigned kPacketLanes = 8;

/// \tparam E of queries, cache and outputs. \tparam kPaddedLanes 64, 128 or 256, no fewer than
/// head_size and value_head_size. \tparam kIsWide rows and registers for long prompts; without
/// masks and caps. Two blocks of a wide shape fill a multiprocessor up to 128 lanes, one beyond.
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
  static constexpr unsigned kBlocks = kLanes == 256 ? 1 : kLanes == 128 ? 2 : kWide ? 3 : 4;

  static constexpr unsigned kPackets = kLanes / kPacketLanes;  ///< Of a row in shared memory.
  static constexpr unsigned kRowBytes = kLanes * 2;
  static constexpr unsigned kTileBytes = kKeys * kRowBytes;
  /// Keys, then values.
  static constexpr unsigned kStageBytes = 2 * kTileBytes;

  /// Fragments of the queries stay in registers where there is room for them. Queries then wait in
  /// the second stage for being read, and the output of the block lies there at the end.
  static constexpr bool kQueryInRegisters = kAtoms == 1 || kLanes < 128;
  static constexpr unsigned kQueryAt = kQueryInRegisters ? kStageBytes : 2 * kStageBytes;

  static constexpr std::uint32_t rows(std::uint32_t threads) { return threads / 32 * kWarpRows; }
  static constexpr std::uint32_t shared_bytes(std::uint32_t threads) {
    return 2 * kStageBytes + (kQueryInRegisters ? 0 : rows(threads) * kRowBytes);
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
