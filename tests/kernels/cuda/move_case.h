// Rows to move, and where they lie then, by plain loops.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/kernels/cuda/world.h"

namespace kvcheck::kernels::device {

struct MoveRows {
  std::int64_t from = 0, to = 0, rows = 0;
};

struct MoveCase {
  std::int64_t key_row_bytes = 16, value_row_bytes = 16;
  std::int32_t kv_heads = 2;
  std::int64_t rows = 8;           ///< That a buffer has for each head.
  std::vector<MoveRows> moves;     ///< Of each entry.
  bool to_another_buffer = false;  ///< A stage, of 3 rows more.
  std::size_t shift = 0;           ///< Bytes between an address of 256 and the buffers.
};

/// Keys and then values of the buffer that the rows go to.
Outcome run_move(const MoveCase& one, const KernelTable& kernels, simt::Order order);
std::vector<std::byte> expected_move(const MoveCase& one);

/// Overlaps in both directions, of rows of many widths; longer than one chunk, too.
std::vector<MoveCase> move_cases();

}  // namespace kvcheck::kernels::device
