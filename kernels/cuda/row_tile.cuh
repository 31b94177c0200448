// What a block of the decode kernels works on, and how it writes what its warps have found.
#pragma once

#include <cstdint>

#include "kernels/cuda/band.cuh"
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/merge.cuh"
#include "kernels/cuda/parameters.h"
#include "kernels/cuda/planted.h"
#include "kernels/cuda/tile_copy.cuh"

namespace kvcheck::kernels::device::decoding {
namespace {

/// What a block works on.
struct RowTile {
  std::int64_t entry, head;      ///< KV head.
  std::int64_t first_row, rows;  ///< Of those that share the KV head; rows <= 0: none.
  Band visited;                  ///< Positions that some row sees, in this split.
  Band inner;                    ///< Positions that every row sees, before the mask.
};

template <Fault kFault>
KV_DEVICE RowTile row_tile(const AttentionParameters& p, const EntryView& entry, int tile_rows) {
  const std::int64_t group = p.query_heads / p.kv_heads;
  const std::int64_t tiles = (p.queries * group + tile_rows - 1) / tile_rows;
  RowTile tile;
  tile.entry = block_index().z;
  tile.head = block_index().x / tiles;
  tile.first_row = block_index().x % tiles * tile_rows;
  const std::int64_t left = entry.queries * group - tile.first_row;
  tile.rows = left < tile_rows ? left : tile_rows;
  if (tile.rows <= 0) return tile;
  const Band first = band_of<kFault>(p, entry, tile.first_row / group);
  const Band last = band_of<kFault>(p, entry, (tile.first_row + tile.rows - 1) / group);
  tile.visited = {first.begin, last.end};
  tile.inner = {last.begin, first.end};
  if (p.splits > 1) {
    const std::int64_t begin = (p.first_split + block_index().y) * p.split_positions;
    const std::int64_t end = begin + p.split_positions;
    if (begin > tile.visited.begin) tile.visited.begin = begin;
    if (end < tile.visited.end) tile.visited.end = end;
  }
  if (tile.visited.begin > tile.inner.begin) tile.inner.begin = tile.visited.begin;
  if (tile.visited.end < tile.inner.end) tile.inner.end = tile.visited.end;
  return tile;
}

/// Tiles of a warp: first, first + warps of the block, ... below end. Which warp takes a tile
/// depends on its position alone.
struct WarpTiles {
  std::int64_t first, end;
};

KV_DEVICE WarpTiles warp_tiles(const Band& visited, int keys) {
  if (visited.begin >= visited.end) return {0, 0};
  const std::int64_t warps = block_threads() / 32, warp = warp_index();
  const std::int64_t first = visited.begin / keys;
  return {first + (warp + warps - first % warps) % warps, (visited.end + keys - 1) / keys};
}

/// Leaves what the block's rows see where all its threads find it; rows that are none see nothing.
template <Fault kFault>
KV_DEVICE void share_row_views(const AttentionParameters& p, const EntryView& entry,
                               const RowTile& tile, int tile_rows, RowView* rows) {
  for (int r = thread_index(); r < tile_rows; r += block_threads()) {
    const std::int64_t row = tile.first_row + r;
    const RowView view = row_view<kFault>(p, entry, tile.entry, tile.head, row, tile.first_row);
    rows[r].band.begin = r < tile.rows ? view.band.begin : 0;
    rows[r].band.end = r < tile.rows ? view.band.end : 0;
    rows[r].mask = view.mask;
    rows[r].output = view.output;
  }
  sync_block();
}

/// The rows of one KV head that a block reads, keys or values of elements of `element_bytes`.
KV_DEVICE RowSource row_source(const void* rows, std::int64_t head_stride, const EntryView& entry,
                               const RowTile& tile, std::int64_t row_bytes) {
  return {static_cast<const unsigned char*>(rows) + tile.head * head_stride, entry.first_position,
          row_bytes, tile.visited};
}

/// Merges the results that the warps left in shared memory, in their order, and writes them: the
/// output, or the partial result of the split.
template <class Memory, class E, Fault kFault>
KV_DEVICE void write_rows(const AttentionParameters& p, const RowTile& tile, const RowView* rows,
                          const unsigned char* shared) {
  const int warps = block_threads() / 32;
  const int lanes = p.value_head_size;
  const int width =
      (lanes + 31) / 32 * 32;  // A warp writes one row at a time, all lanes of it read.
  for (int at = thread_index(); at < tile.rows * width; at += block_threads()) {
    const int r = at / width, lane = at % width;
    const auto partial = [&](int warp) {
      return reinterpret_cast<const float*>(shared + warp * Memory::kBytes);
    };
    float maximum = kMinusInfinity, sum = 0.f, value = 0.f;
    for (int w = 0; w < warps; ++w) maximum = larger(maximum, partial(w)[Memory::kMaxima + r]);
    for (int w = 0; w < warps; ++w) {
      const float factor = part_factor(partial(w)[Memory::kMaxima + r], maximum);
      sum = fused(partial(w)[Memory::kSums + r], factor, sum);
      value = fused(partial(w)[Memory::place(r, lane)], factor, value);
    }
    if (lane >= lanes) continue;
    const std::int64_t row = rows[r].output;
    const std::int64_t query_head = row % p.query_heads;
    if (p.splits == 1) {
      const RowFinish finish = row_finish(p, query_head, maximum, sum);
      static_cast<E*>(p.output)[row * lanes + lane] =
          finished<E>(value, finish, value_scale_of(p, tile.head, lane));
      continue;
    }
    const std::int64_t part = row * p.splits + block_index().y;
    p.partial_outputs[part * lanes + lane] = value;
    if (lane == 0) {
      p.partial_maxima[part] = maximum;
      const bool again = has(kFault, Fault::decode_sink_each_split) && p.sinks != nullptr;
      p.partial_sums[part] =
          again ? sum + exp2_approx(p.sinks[query_head] * kLog2E - maximum) : sum;
    }
  }
}

}  // namespace
}  // namespace kvcheck::kernels::device::decoding
