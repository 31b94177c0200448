// The 16-bit element types and the unit of vector access, as kernels and host both see them.
#pragma once

#include <cstdint>

namespace kvcheck::kernels::device {

/// IEEE binary16.
struct F16 {
  std::uint16_t bits;
};

/// The upper half of an IEEE binary32.
struct BF16 {
  std::uint16_t bits;
};

/// What one thread moves in one access.
struct alignas(16) Packet {
  std::uint32_t word[4];
};

/// Two numbers that one 32-bit word holds in a 16-bit type.
struct Pair {
  float low, high;
};

/// Threads, blocks and their counts.
struct Index3 {
  std::uint32_t x = 1, y = 1, z = 1;
};

/// Grid and block of a launch. Blocks have one dimension, a multiple of 32 threads.
struct LaunchShape {
  Index3 grid;
  std::uint32_t threads = 32;
  std::uint32_t shared_bytes = 0;  ///< Dynamic shared memory of a block.
};

inline constexpr unsigned kAllLanes = 0xffffffffu;

}  // namespace kvcheck::kernels::device
