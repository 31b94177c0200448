// How one warp brings a tile of rows, key or value, from the cache into its shared memory.
#pragma once

#include <cstdint>

#include "kernels/cuda/band.cuh"
#include "kernels/cuda/device.cuh"

namespace kvcheck::kernels::device::decoding {
namespace {

/// Rows of one KV head in global memory.
struct RowSource {
  const unsigned char* rows;  ///< Row of position `first`.
  std::int64_t first;         ///< Position.
  std::int64_t row_bytes;     ///< A multiple of 16, at most that of a row in shared memory.
  Band band;                  ///< Nothing outside it is read; zeros take its place.
};

/// How a tile lies in shared memory. Swizzled: the eight rows of a matrix lie in different banks,
/// whatever column they are read at. Columns: packet after packet, each of all rows.
enum class Layout { rows, swizzled, columns };

/// Where packet `column` of row `row` of a tile of kRows rows lies.
template <int kRows, int kRowBytes, Layout kLayout>
KV_DEVICE unsigned packet_place(unsigned row, unsigned column) {
  if constexpr (kLayout == Layout::columns) return (column * kRows + row) * 16;
  const unsigned at = kLayout == Layout::swizzled ? column ^ (row & 7u) : column;
  return row * kRowBytes + at * 16;
}

/// Begins to copy the rows of positions [first, first + kRows) to `shared`, by all lanes of a warp.
template <int kRows, int kRowBytes, Layout kLayout>
KV_DEVICE void copy_tile(unsigned char* shared, const RowSource& source, std::int64_t first) {
  constexpr unsigned kPackets = kRowBytes / 16;
  static_assert(kPackets <= 32 && 32 % kPackets == 0 && kRows * kPackets % 32 == 0);
  constexpr unsigned kRowsAtOnce = 32 / kPackets;
  const unsigned column = lane_index() % kPackets;
  const unsigned lane_row = lane_index() / kPackets;
  const bool in_row = column * 16 < source.row_bytes;
  std::int64_t offset = (first - source.first + lane_row) * source.row_bytes + column * 16;
  const std::int64_t step = kRowsAtOnce * source.row_bytes;
  const auto place = [&](unsigned row) {
    return shared + packet_place<kRows, kRowBytes, kLayout>(row + lane_row, column);
  };
  if (first >= source.band.begin && first + kRows <= source.band.end) {
    const unsigned char* from = source.rows + (in_row ? offset : 0);
    const std::int64_t next = in_row ? step : 0;
    KV_UNROLL
    for (unsigned row = 0; row < kRows; row += kRowsAtOnce) {
      copy_async(place(row), from, in_row ? 16 : 0);
      from += next;
    }
    return;
  }
  KV_UNROLL
  for (unsigned row = 0; row < kRows; row += kRowsAtOnce) {
    const std::int64_t position = first + row + lane_row;
    const bool read = in_row && position >= source.band.begin && position < source.band.end;
    copy_async(place(row), source.rows + (read ? offset : 0), read ? 16 : 0);
    offset += step;
  }
}

}  // namespace
}  // namespace kvcheck::kernels::device::decoding
