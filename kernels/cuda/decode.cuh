// Decode attention on CUDA cores, for caches of f16, bf16 and int8: few query rows, many keys.
//
// Grid: KV heads x tiles of query rows, splits, batch. The query heads of a KV head, times the
// queries of the step, are the rows; a block takes up to eight of them, and each key and value row
// is read once for all. A block's positions are those of its split inside the band that its rows
// see, in tiles at multiples of the tile's size; tile t belongs to warp t % warps. A warp streams
// its tiles through shared memory of its own: 16-byte cp.async, the next tile under way while this
// one is used, no barrier of the block until the warps' results are merged. Registers: each lane
// holds eight elements of every query row and of every output row.
//
// Arithmetic, in the terms of model/arithmetic_profile.h: products by fma in f32 (exact_products
// for 16-bit caches), chains of 8 elements and a pairwise tree over them (dot_ways = 1, dot_block =
// 8), scale * log2(e) folded (base_two); softcap by tanh; bias * log2(e) by fma. The maximum is
// subtracted, not fused (fused_shift = false). Weights stay f32 and are not rounded
// (probability_roundoff = 0). Exponentials: ex2.approx, exp_error = 2^-22, exp_flushes. The running
// maximum is looked at once a tile by each warp: any key may meet a rescale at each tile
// (rescale_block = 1 where masks leave keys far apart). Warps and splits are merged in ascending
// order: splits = warps x splits, value_block = split_positions, merges_by_lse = false. int8: one
// rounding by each scale (dequantise_roundings = 1); per channel the key's scale is on the query.
#pragma once

#include <cstdint>

#include "kernels/cuda/band.cuh"
#include "kernels/cuda/decode_tile.cuh"
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/parameters.h"
#include "kernels/cuda/planted.h"
#include "kernels/cuda/row_tile.cuh"
#include "kernels/cuda/tile_copy.cuh"

namespace kvcheck::kernels::device::decoding {
namespace {

/// Shared memory of one warp of the decode kernel. The partial result takes the place of tiles.
template <class S>
struct DecodeMemory {
  static constexpr int kStages = 2;
  static constexpr int kStageBytes = 2 * S::kTileBytes;  // Keys, then values.
  static constexpr int kWeights = kStages * kStageBytes;
  static constexpr int kFactors = kWeights + S::kWeightFloats * 4;
  static constexpr int kBytes = (kFactors + S::kRows * 4 + 15) / 16 * 16;
  // A row of a partial result: the first halves of the parts, then the second ones, 16 banks on.
  static constexpr int kHalf = S::kPadded / 2 + 16;
  static constexpr int kMaxima = S::kRows * 2 * kHalf;
  static constexpr int kSums = kMaxima + S::kRows;
  static_assert((kSums + S::kRows) * 4 <= kWeights);
  static KV_DEVICE int place(int row, int lane) {
    return row * 2 * kHalf + lane % 8 / 4 * kHalf + lane / 8 * 4 + lane % 4;
  }
};

/// What a lane keeps of the softmax: of the rows that it holds weights of, over its keys.
template <class S>
struct WeightState {
  float maximum[S::kHeld];
  float sum[S::kHeld];
};

/// Turns the tile's products into weights, in place. \return whether the maximum of a row has
/// risen; then `factors` holds what its sums are multiplied with
template <class S>
KV_DEVICE bool weigh_keys(const AttentionParameters& p, const RowView* rows, const LogitScale& by,
                          std::int64_t first_position, bool clean, WeightState<S>& state,
                          float* weights, float* factors) {
  const int lane = lane_index();
  const bool holds = lane < S::kHolders;
  const int key = lane / S::kKeyLanes % S::kKeys;
  const int first_row = lane % S::kKeyLanes * S::kHeld;
  float weight[S::kHeld] = {}, factor[S::kHeld];
  if (holds) load_weights<S, S::kHeld>(weights, key, first_row, weight);
  bool rises = false;
  KV_UNROLL
  for (int i = 0; i < S::kHeld; ++i) {
    float logit = base_two_logit(by, weight[i]);
    if (!clean) {
      const RowView& row = rows[first_row + i];
      const std::int64_t position = first_position + key;
      const bool seen = position >= row.band.begin && position < row.band.end;
      logit = seen ? masked_logit<typename S::Query>(p, row.mask, position, logit) : kMinusInfinity;
    }
    if (!holds) logit = kMinusInfinity;
    float largest = logit;
    KV_UNROLL
    for (int bit = S::kKeyLanes; bit < 32; bit *= 2) {
      largest = larger(largest, shuffle_xor(kAllLanes, largest, bit));
    }
    const float before = state.maximum[i];
    const float maximum = larger(before, largest);
    factor[i] = maximum > before ? part_factor(before, maximum) : 1.f;
    rises |= maximum > before;
    weight[i] = logit == kMinusInfinity ? 0.f : exp2_approx(logit - maximum);
    state.maximum[i] = maximum;
    state.sum[i] = fused(state.sum[i], factor[i], weight[i]);
  }
  if (holds) store_weights<S, S::kHeld>(weights, key, first_row, weight);
  const bool rescales = any_of(kAllLanes, rises);
  if (rescales && lane < S::kKeyLanes) {
    KV_UNROLL
    for (int i = 0; i < S::kHeld; ++i) factors[first_row + i] = factor[i];
  }
  return rescales;
}

template <class S>
KV_DEVICE void rescale(const float* factors, float (&output)[S::kRows][8]) {
  KV_UNROLL
  for (int r = 0; r < S::kRows; ++r) {
    const float factor = factors[r];
    KV_UNROLL
    for (int c = 0; c < 8; ++c) output[r][c] *= factor;
  }
}

/// The part of the query rows that a lane multiplies keys with, in f32.
template <class S>
KV_DEVICE void load_queries(const AttentionParameters& p, const RowTile& tile, const RowView* rows,
                            float (&query)[S::kRows][8]) {
  using Q = typename S::Query;
  const int lane = lane_index() % S::kLanes * 8;
  KV_UNROLL
  for (int r = 0; r < S::kRows; ++r) {
    const bool real = r < tile.rows && lane < p.head_size;
    Packet packet{{0u, 0u, 0u, 0u}};
    if (real) {
      packet = load_packet(static_cast<const Q*>(p.query) + rows[r].output * p.head_size + lane);
    }
    KV_UNROLL
    for (int i = 0; i < 4; ++i) {
      const Pair pair = unpack<Q>(packet.word[i]);
      query[r][2 * i] = pair.low;
      query[r][2 * i + 1] = pair.high;
    }
    if (sizeof(typename S::Cache) == 1 && p.per_channel && real) {
      const float* scale = p.key_scale + tile.head * p.head_size + lane;
      KV_UNROLL
      for (int c = 0; c < 8; ++c) query[r][c] *= scale[c];
    }
  }
}

/// Leaves a warp's result in its shared memory.
template <class S>
KV_DEVICE void keep_partial(const WeightState<S>& state, float (&output)[S::kRows][8],
                            float* partial) {
  using Memory = DecodeMemory<S>;
  const int lane = lane_index();
  KV_UNROLL
  for (int i = 0; i < S::kHeld; ++i) {
    float sum = state.sum[i];
    KV_UNROLL
    for (int bit = S::kKeyLanes; bit < 32; bit *= 2) sum += shuffle_xor(kAllLanes, sum, bit);
    if (lane < S::kKeyLanes) {
      partial[Memory::kMaxima + lane * S::kHeld + i] = state.maximum[i];
      partial[Memory::kSums + lane * S::kHeld + i] = sum;
    }
  }
  KV_UNROLL
  for (int r = 0; r < S::kRows; ++r) {
    KV_UNROLL
    for (int c = 0; c < 8; ++c) {
      KV_UNROLL
      for (int bit = S::kLanes; bit < 32; bit *= 2) {
        output[r][c] += shuffle_xor(kAllLanes, output[r][c], bit);
      }
    }
    if (lane < S::kLanes) {
      float* row = partial + r * 2 * Memory::kHalf + lane * 4;
      store_floats<4>(row, output[r]);
      store_floats<4>(row + Memory::kHalf, output[r] + 4);
    }
  }
}

template <class S, Fault kFault>
KV_KERNEL void KV_LAUNCH_BOUNDS(kDecodeThreads, S::kRows == 8 ? 2 : 3)
    decode_kernel(const AttentionParameters p) {
  using Memory = DecodeMemory<S>;
  KV_SHARED_BYTES(shared);
  const EntryView entry = p.entries[block_index().z];
  const RowTile of = row_tile<kFault>(p, entry, S::kRows);
  if (of.rows <= 0) return;
  const bool empty = of.visited.begin >= of.visited.end;
  if (has(kFault, Fault::decode_no_empty_split) && empty && p.splits > 1) return;

  const int warps = block_threads() / 32, warp = warp_index();
  RowView* rows = reinterpret_cast<RowView*>(shared + warps * Memory::kBytes);
  share_row_views<kFault>(p, entry, of, S::kRows, rows);

  float query[S::kRows][8], output[S::kRows][8] = {};
  load_queries<S>(p, of, rows, query);
  WeightState<S> state;
  KV_UNROLL
  for (int i = 0; i < S::kHeld; ++i) {
    state.maximum[i] = kMinusInfinity;
    state.sum[i] = 0.f;
  }
  const bool one_scale = sizeof(typename S::Cache) == 1 && !p.per_channel;
  const LogitScale by = logit_scale(p, one_scale ? p.key_scale[0] : 1.f);

  constexpr std::int64_t kBytes = S::kElementBytes;
  const RowSource keys =
      row_source(entry.key, entry.key_head_stride, entry, of, p.head_size * kBytes);
  const RowSource values =
      row_source(entry.value, entry.value_head_stride, entry, of, p.value_head_size * kBytes);
  unsigned char* own = shared + warp * Memory::kBytes;
  float* weights = reinterpret_cast<float*>(own + Memory::kWeights);
  float* factors = reinterpret_cast<float*>(own + Memory::kFactors);
  const auto copy = [&](std::int64_t tile, int stage) {
    std::int64_t first = tile * S::kKeys;
    if (has(kFault, Fault::decode_narrow_position)) first = static_cast<std::int32_t>(first);
    unsigned char* to = own + stage * Memory::kStageBytes;
    copy_tile<S::kKeys, S::kRowBytes, kDecodeLayout<kFault>>(to, keys, first);
    copy_tile<S::kKeys, S::kRowBytes, kDecodeLayout<kFault>>(to + S::kTileBytes, values, first);
  };

  const WarpTiles mine = warp_tiles(of.visited, S::kKeys);
  if (mine.first < mine.end) copy(mine.first, 0);
  commit_copies();
  int stage = 0;
  for (std::int64_t tile = mine.first; tile < mine.end; tile += warps, stage ^= 1) {
    if (tile + warps < mine.end) copy(tile + warps, stage ^ 1);
    commit_copies();
    if (!has(kFault, Fault::decode_no_wait)) wait_copies<1>();
    sync_warp();
    const unsigned char* at = own + stage * Memory::kStageBytes;
    const std::int64_t first = tile * S::kKeys;
    const bool whole = first + S::kKeys <= of.inner.end || has(kFault, Fault::decode_tail);
    const bool clean = p.mask_kind == MaskKind::none && first >= of.inner.begin && whole;

    multiply_keys<S, kFault>(query, at, weights);
    if (!has(kFault, Fault::decode_no_score_sync)) sync_warp();
    const bool rescales = weigh_keys<S>(p, rows, by, first, clean, state, weights, factors);
    sync_warp();
    if (rescales) rescale<S>(factors, output);
    if (clean) {
      add_values<S, true, kFault>(weights, at + S::kTileBytes, output);
    } else {
      add_values<S, false, kFault>(weights, at + S::kTileBytes, output);
    }
    if (!has(kFault, Fault::decode_stage_reuse)) sync_warp();
  }
  wait_copies<0>();
  if (!has(kFault, Fault::decode_idle_warp) || mine.first < mine.end) {
    keep_partial<S>(state, output, reinterpret_cast<float*>(own));
  }
  if (!has(kFault, Fault::decode_no_warp_merge_sync)) sync_block();
  write_rows<Memory, typename S::Query, kFault>(p, of, rows, shared);
}

}  // namespace
}  // namespace kvcheck::kernels::device::decoding
