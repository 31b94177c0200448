// Working memory of one thread for one unit of work at a time.
#pragma once

#include <cstdint>
#include <span>

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

/// What the memory holds at first.
enum class Content {
  zero,
  any  ///< As the workspace before left it: the kernels write before they read.
};

class Workspace {
 public:
  explicit Workspace(const UnitShape& shape, Content content = Content::any);
  Workspace(Workspace&&) noexcept = default;
  Workspace& operator=(Workspace&&) = delete;
  ~Workspace();

  TileScratch scratch;
  float* query = nullptr;  ///< [rows][key_lanes]
  Partial chunk, merged;
  std::span<std::int64_t> begin, end;  ///< [rows]
  std::int64_t bytes() const { return static_cast<std::int64_t>(bytes_); }

 private:
  Arena memory_;
  std::size_t bytes_ = 0;  // Of memory_, which may be larger.
};

}  // namespace kvcheck::kernels::flash
