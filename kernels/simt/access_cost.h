// What one access of a warp costs in memory transactions, by the published rules of the hardware.
#pragma once

#include <array>
#include <cstdint>

namespace kvcheck::kernels::simt {

/// The lanes that executed one instruction, and which bytes each asked for.
struct WarpAccess {
  std::uint32_t lanes = 0;
  std::array<std::uint64_t, 32> address;  ///< Of shared memory: offset from its begin.
  std::array<std::uint8_t, 32> bytes;     ///< 1 to 16.
};

/// Wavefronts beyond one for each group of lanes that the hardware takes together: 32 lanes of up
/// to 4 bytes, 16 of 8 or 8 of 16. A bank gives one 4-byte word a wavefront, to any number of
/// lanes.
std::int64_t bank_conflicts(const WarpAccess& access);

struct Transfer {
  std::int64_t bytes = 0;    ///< Distinct ones.
  std::int64_t sectors = 0;  ///< Distinct units of 32 aligned bytes.
};
Transfer transfer(const WarpAccess& access);

}  // namespace kvcheck::kernels::simt
