// Rows that were moved are those of before, whatever the two ranges have in common.
#include "tests/kernels/cuda/move_case.h"

namespace kvcheck::kernels::device {
namespace {

TEST(Move, MovesWhatPlainLoopsMoveUnderEveryOrder) {
  for (const MoveCase& one : move_cases()) {
    const std::vector<std::byte> expected = expected_move(one);
    for (const simt::Order order : kAllOrders) {
      const Outcome found = run_move(one, simt_kernels(), order);
      expect_none(found.defects);
      EXPECT_TRUE(found.bytes == expected)
          << "rows of " << one.key_row_bytes << " and " << one.value_row_bytes << " bytes, "
          << one.rows << " rows, " << to_string(order);
    }
  }
}

/// Every move within a buffer of `rows` rows, an entry each.
std::vector<MoveRows> every_move(std::int64_t rows) {
  std::vector<MoveRows> moves;
  for (std::int64_t from = 0; from < rows; ++from) {
    for (std::int64_t to = 0; to < rows; ++to) {
      for (std::int64_t count = 0; count <= rows - std::max(from, to); ++count) {
        moves.push_back({from, to, count});
      }
    }
  }
  return moves;
}

TEST(Move, EveryDistanceInBothDirections) {
  MoveCase one;
  one.kv_heads = 1;
  for (const std::int64_t rows : {1, 2, 5, 9}) {
    one.rows = rows;
    one.moves = every_move(rows);
    // Packets, words and bytes.
    for (const auto& [key, value] : {std::pair{16, 8}, {6, 1}}) {
      one.key_row_bytes = key;
      one.value_row_bytes = value;
      const simt::Order order = kAllOrders[static_cast<std::size_t>(rows + key) % 5];
      const Outcome found = run_move(one, simt_kernels(), order);
      expect_none(found.defects);
      EXPECT_TRUE(found.bytes == expected_move(one)) << rows << " rows of " << key << " bytes";
    }
  }
}

TEST(Move, EveryDistanceOfMoreThanOneChunk) {
  // Packets: 1,024 in a chunk. Rows of 1 KiB, so that every distance from 1 row on is met.
  MoveCase one;
  one.kv_heads = 1;
  one.key_row_bytes = 1024;
  one.value_row_bytes = 260;
  one.rows = 41;
  for (std::int64_t distance = 1; distance < one.rows; ++distance) {
    one.moves = {{distance, 0, one.rows - distance}, {0, distance, one.rows - distance}};
    const Outcome found =
        run_move(one, simt_kernels(), kAllOrders[static_cast<std::size_t>(distance) % 5]);
    expect_none(found.defects);
    EXPECT_TRUE(found.bytes == expected_move(one)) << "distance " << distance;
  }
}

}  // namespace
}  // namespace kvcheck::kernels::device
