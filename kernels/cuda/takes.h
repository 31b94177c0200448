// Which shapes the fused kernels take, and the sizes of their tiles: what a session needs to choose
// a kernel and to cut a launch. Plain code of the host; the unfused kernel takes everything.
#pragma once

#include <cstdint>

#include "kernels/cuda/kernel_table.h"

namespace kvcheck::kernels::device {

/// What decides whether a kernel takes a step.
struct AttentionShape {
  Element element = Element::f32;
  bool int8_cache = false;
  std::int64_t head_size = 0, value_head_size = 0;
  /// Rows that share a KV head: query heads of a KV head x most queries of any entry.
  std::int64_t rows = 0;
};

/// Lanes that a head takes up in a kernel: 64, 128 or 256; 0 = none of the fused kernels takes it.
constexpr int padded_head(std::int64_t head_size, std::int64_t value_head_size) {
  const std::int64_t larger = head_size > value_head_size ? head_size : value_head_size;
  if (head_size <= 0 || value_head_size <= 0 || larger > 256) return 0;
  return larger <= 64 ? 64 : larger <= 128 ? 128 : 256;
}

/// 16-bit queries; 16-bit or int8 rows, whose bytes are a multiple of a 16-byte packet.
constexpr bool takes_decode(const AttentionShape& shape) {
  const std::int64_t multiple = shape.int8_cache ? 16 : 8;
  return shape.element != Element::f32 && shape.head_size % multiple == 0 &&
         shape.value_head_size % multiple == 0 &&
         padded_head(shape.head_size, shape.value_head_size) != 0 && shape.rows > 0;
}

/// The same without int8, and heads of up to 128 lanes: the sums of wider ones do not fit a warp's
/// registers. It is the faster one from kMatrixRows rows on.
constexpr bool takes_decode_matrix(const AttentionShape& shape) {
  return !shape.int8_cache && takes_decode(shape) &&
         padded_head(shape.head_size, shape.value_head_size) <= 128;
}
inline constexpr std::int64_t kMatrixRows = 8;

/// 16-bit rows, any number of queries.
constexpr bool takes_prefill(const AttentionShape& shape) {
  return !shape.int8_cache && takes_decode(shape);
}
/// From so many rows on it is faster than the others: they fill the tile of one of its blocks.
inline constexpr std::int64_t kPrefillRows = 64;

/// Keys that one warp of `decode` takes at a time: what fills 4 KiB, at least 16, at most 32.
constexpr int decode_tile(int row_bytes) {
  const int keys = 4096 / row_bytes;
  return keys < 16 ? 16 : keys < 32 ? keys : 32;
}

/// Keys that one warp of `decode_matrix` takes at a time: a multiple of the 16 of an mma.
constexpr int decode_matrix_tile(int padded) { return padded == 64 ? 32 : 16; }

/// Threads of a block of either kernel at most, and what is best on an H200.
inline constexpr std::uint32_t kDecodeThreads = 128;

/// Warps of a block at most, each with tiles of its own: fewer where rows are so wide that three
/// blocks would not fit a multiprocessor.
constexpr std::uint32_t decode_warps(int row_bytes) { return row_bytes > 256 ? 2 : 4; }

/// AttentionParameters::split_positions is a multiple of this for either kernel, whatever the
/// launch: a multiple of what four warps take at a time.
inline constexpr std::int64_t kSplitUnit = 256;

}  // namespace kvcheck::kernels::device
