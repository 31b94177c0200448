// Decode attention on matrix units, for f16 and bf16 caches and many query rows to a KV head.
//
// Grid, splits, bands, tiles of a warp and merging are those of decode.cuh; a block takes sixteen
// query rows, those that are missing are zeros. Operands are read from swizzled shared memory by
// ldmatrix, query rows included; weights and outputs stay in registers.
//
// Arithmetic, in the terms of model/arithmetic_profile.h: products exact, sums of f32 by the matrix
// unit, sixteen elements at a time in an order of its own, towards zero (truncates, dot_ways = 0,
// dot_block = 16); scale * log2(e) folded (base_two); softcap by tanh; bias * log2(e) by fma; the
// maximum subtracted (fused_shift = false). Exponentials: ex2.approx, exp_error = 2^-22,
// exp_flushes. Weights are rounded to the element type for P.V (probability_roundoff = 2^-11 or
// 2^-8; in f16 scaled by 2^15, which is exact), the row sum adds them unrounded
// (sums_stored_weights = false). rescale_block = 1, splits = warps x splits, value_block =
// split_positions, merges_by_lse = false, as in decode.cuh.
#pragma once

#include <cstdint>

#include "kernels/cuda/band.cuh"
#include "kernels/cuda/decode_matrix_tile.cuh"
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/floats.cuh"
#include "kernels/cuda/parameters.h"
#include "kernels/cuda/planted.h"
#include "kernels/cuda/row_tile.cuh"
#include "kernels/cuda/tile_copy.cuh"

namespace kvcheck::kernels::device::decoding {
namespace {

/// Shared memory of one warp of the matrix kernel. The partial result takes the place of tiles.
template <class S>
struct MatrixMemory {
  static constexpr int kStages = 2;
  static constexpr int kStageBytes = 2 * S::kTileBytes;  // Keys, then values.
  static constexpr int kBytes = kStages * kStageBytes;
  static_assert(S::kAside * S::kKeys * 4 <= S::kTileBytes);
  static constexpr int kQueryBytes = S::kRows * S::kRowBytes;  // Of the block, once.
  // A row of a partial result: eight floats more than there are, so that rows begin in different
  // banks.
  static constexpr int kRow = S::kPadded + 8;
  static constexpr int kMaxima = S::kRows * kRow;
  static constexpr int kSums = kMaxima + S::kRows;
  static_assert((kSums + S::kRows) * 4 <= kBytes);
  static KV_DEVICE int place(int row, int lane) { return row * kRow + lane; }
};

/// Brings the query rows to shared memory, swizzled; lanes behind the head and rows that are
/// missing are 0.
template <class S>
KV_DEVICE void share_queries(const AttentionParameters& p, const RowTile& tile, const RowView* rows,
                             unsigned char* queries) {
  using E = typename S::Element;
  for (int at = thread_index(); at < S::kRows * S::kPackets; at += block_threads()) {
    const int row = at / S::kPackets, packet = at % S::kPackets;
    const bool real = row < tile.rows && packet * 8 < p.head_size;
    Packet value{{0u, 0u, 0u, 0u}};
    if (real) {
      value =
          load_packet(static_cast<const E*>(p.query) + rows[row].output * p.head_size + packet * 8);
    }
    store_packet(queries + packet_place<S::kRows, S::kRowBytes, S::kLayout>(row, packet), value);
  }
  sync_block();
}

/// Leaves a warp's result in its shared memory.
template <class S>
KV_DEVICE void keep_matrix_partial(const MatrixState& state, const OutputFragments<S>& output,
                                   float* partial) {
  using Memory = MatrixMemory<S>;
  const int column = lane_index() % 4 * 2;
  KV_UNROLL
  for (int half = 0; half < 2; ++half) {
    const int row = lane_index() / 4 + half * 8;
    float sum = state.sum[half];
    sum += shuffle_xor(kAllLanes, sum, 1);
    sum += shuffle_xor(kAllLanes, sum, 2);
    if (column == 0) {
      partial[Memory::kMaxima + row] = state.maximum[half];
      partial[Memory::kSums + row] = sum;
    }
    KV_UNROLL
    for (int d = 0; d < S::kValueTiles; ++d) {
      constexpr float kBack = 1.f / S::kWeightScale;
      const float both[2] = {output[d][half * 2] * kBack, output[d][half * 2 + 1] * kBack};
      store_floats<2>(partial + Memory::place(row, d * 8 + column), both);
    }
  }
}

template <class S>
KV_KERNEL void KV_LAUNCH_BOUNDS(kDecodeThreads, 3)
    decode_matrix_kernel(const AttentionParameters p) {
  using Memory = MatrixMemory<S>;
  constexpr Fault kFault = S::kFault;
  KV_SHARED_BYTES(shared);
  const EntryView entry = p.entries[block_index().z];
  const RowTile of = row_tile<kFault>(p, entry, S::kRows);
  if (of.rows <= 0) return;
  const int warps = block_threads() / 32, warp = warp_index();
  unsigned char* queries = shared + warps * Memory::kBytes;
  RowView* rows = reinterpret_cast<RowView*>(queries + Memory::kQueryBytes);
  share_row_views<kFault>(p, entry, of, S::kRows, rows);

  share_queries<S>(p, of, rows, queries);
  OutputFragments<S> output = {};
  MatrixState state;
  const LogitScale by = logit_scale(p, 1.f);

  const RowSource keys = row_source(entry.key, entry.key_head_stride, entry, of, p.head_size * 2LL);
  const RowSource values =
      row_source(entry.value, entry.value_head_stride, entry, of, p.value_head_size * 2LL);
  unsigned char* own = shared + warp * Memory::kBytes;
  const auto copy = [&](std::int64_t tile, int stage) {
    unsigned char* to = own + stage * Memory::kStageBytes;
    copy_tile<S::kKeys, S::kRowBytes, S::kLayout>(to, keys, tile * S::kKeys);
    copy_tile<S::kKeys, S::kRowBytes, S::kLayout>(to + S::kTileBytes, values, tile * S::kKeys);
  };

  const WarpTiles mine = warp_tiles(of.visited, S::kKeys);
  if (mine.first < mine.end) copy(mine.first, 0);
  commit_copies();
  int stage = 0;
  for (std::int64_t tile = mine.first; tile < mine.end; tile += warps, stage ^= 1) {
    if (tile + warps < mine.end) copy(tile + warps, stage ^ 1);
    commit_copies();
    if (!has(kFault, Fault::matrix_no_wait)) wait_copies<1>();
    sync_warp();
    unsigned char* at = own + stage * Memory::kStageBytes;
    const std::int64_t first = tile * S::kKeys;
    const bool clean = p.mask_kind == MaskKind::none && first >= of.inner.begin &&
                       first + S::kKeys <= of.inner.end;
    WeightFragments<S> weight;
    matrix_multiply_keys<S>(queries, at, weight);
    matrix_mask_keys<S>(p, rows, by, first, clean, weight);
    matrix_weigh_keys<S>(state, weight, output);
    unsigned char* values_at = at + S::kTileBytes;
    const bool guards = !clean && !has(kFault, Fault::matrix_hidden_value);
    if (guards && holds_not_finite<S>(values_at)) {
      // The tile's keys are not needed any more.
      set_aside_not_finite<S>(weight, values_at, reinterpret_cast<float*>(at), output);
    }
    matrix_add_values<S>(weight, values_at, output);
    if (!has(kFault, Fault::matrix_stage_reuse)) sync_warp();
  }
  wait_copies<0>();
  keep_matrix_partial<S>(state, output, reinterpret_cast<float*>(own));
  sync_block();
  write_rows<Memory, typename S::Element, kFault>(p, of, rows, shared);
}

}  // namespace
}  // namespace kvcheck::kernels::device::decoding
