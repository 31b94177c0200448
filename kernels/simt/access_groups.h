// Puts together what the lanes of a warp did at one instruction, though fibers run one after
// another: the n-th access of a lane at an instruction, counted since the warp's last barrier,
// belongs to the n-th of the other lanes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/simt/access_cost.h"
#include "kernels/simt/counters.h"
#include "kernels/simt/sites.h"

namespace kvcheck::kernels::simt {

class AccessGroups {
 public:
  AccessGroups(int warps, Counters& counters);

  /// \param site Sites::number of the instruction
  /// \param address of shared memory: offset from its begin
  /// \param bytes any number; more than 16 count as several accesses
  void add(int thread, std::uint32_t site, Traffic traffic, std::uint64_t address,
           std::size_t bytes);
  /// The lanes of the warp are at one place: what is not complete stays so.
  void flush(int warp);
  void flush_all();

 private:
  /// The accesses at one instruction that wait for lanes.
  struct Series {
    Traffic traffic = Traffic::shared;
    bool touched = false;                   ///< Since the last flush.
    std::array<std::uint32_t, 32> times{};  ///< Each lane executed it since then.
    std::uint32_t first = 0;  ///< Number of the first in `waiting` that has not been counted.
    std::uint32_t base = 0;   ///< Number of waiting[0].
    std::vector<WarpAccess> waiting;
  };
  struct Warp {
    std::vector<Series> series;  ///< By site.
    std::vector<std::uint32_t> touched;
  };
  void add_piece(Series& series, std::size_t lane, std::uint64_t address, std::uint8_t bytes);
  void count(Traffic traffic, const WarpAccess& access);

  std::vector<Warp> warps_;
  Counters* counters_;
};

}  // namespace kvcheck::kernels::simt
