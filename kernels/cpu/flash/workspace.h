// Working memory of one thread for one unit of work at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/cpu/arena.h"
#include "kernels/cpu/flash/chunk_task.h"

namespace kvcheck::kernels::flash {

/// Sizes of a unit: query rows, and lanes of keys and values as the tile kernels pad them.
struct UnitShape {
  std::int64_t rows = 0;          ///< Even.
  std::int64_t key_lanes = 0;     ///< A multiple of 8.
  std::int64_t output_lanes = 0;  ///< A multiple of 16.

  /// Maxima are read a vector at a time.
  std::int64_t partial_floats() const { return rows * (1 + kSumLanes + output_lanes) + 16; }
};

/// The parts of `memory`, which has shape.partial_floats() floats.
inline Partial partial_at(float* memory, const UnitShape& shape) {
  float* const sums = memory + shape.rows * shape.output_lanes;
  return {sums + shape.rows * kSumLanes, sums, memory};
}

class Workspace {
 public:
  explicit Workspace(const UnitShape& shape);

  TileScratch scratch;
  float* query = nullptr;  ///< [rows][key_lanes]
  Partial chunk, merged;
  std::vector<std::int64_t> begin, end;  ///< [rows]
  std::int64_t bytes() const;

 private:
  Arena memory_;
  std::vector<std::uint64_t> visible_;
};

}  // namespace kvcheck::kernels::flash
