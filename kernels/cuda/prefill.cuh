// Attention of many queries on matrix units: tiles of query rows against tiles of 64 keys (32 where
// a head has more than 128 lanes), one warp owning 16 or 32 rows and whole tiles, softmax in one
// pass.
//
// Keys and values arrive in two stages by asynchronous copies; queries stay in shared memory, whose
// reads are few beside those of keys and values. Tiles that no row of a block sees are never
// loaded, rows that none of them sees are loaded as zeros, and only tiles at the edge of the band,
// or under a mask, are masked. Tiles begin at multiples of their size in absolute positions, and a
// row's operations depend on its own keys alone, so that neither cache nor step, company or shape
// of the launch changes a bit.
//
// Arithmetic, as kernels::Arithmetic states it (element type E):
//   products q.k and w.v exact, summed on matrix units in f32: 16 products and the sum so far in
//     an order of the hardware's, truncated: accumulator_roundoff 2^-24, truncates, exact_products,
//     dot_ways = dot_block = value_block = 0
//   base_two: log2(e) is part of the scale; fused_shift: the weight is 2^(product * scale - top),
//     one rounding, top rounded before
//   exp_error 2^-22 (ex2.approx), exp_flushes
//   probability_roundoff: weights are rounded to E for w.v (f16 2^-11, bf16 2^-8); the row sum adds
//     them unrounded: sums_stored_weights false
//   rescale_block 32, max_rescales one for each tile; tiles are not aligned with the first key, so
//     that there may be one more than keys fill: splits = 2 counts it
//   the sink is there from the start; division: a reciprocal and a product
#pragma once

#include "kernels/cuda/prefill_softmax.cuh"

namespace kvcheck::kernels::device {
namespace {
namespace prefill {

/// Divides by the sums and stores the rows of one warp, by way of `rows`, its place in shared
/// memory. Rows that saw nothing are 0.
template <class S>
KV_DEVICE void store_rows(const AttentionParameters& p, const QueryTile& tile,
                          const Softmax<S>& softmax, const Outputs<S>& output,
                          unsigned char* rows) {
  using E = typename S::Element;
  // The queries that lie there have been read by every lane.
  if constexpr (!has(S::kFault, Fault::prefill_queries_overwritten)) sync_warp();
  KV_UNROLL
  for (unsigned atom = 0; atom < S::kAtoms; ++atom) {
    KV_UNROLL
    for (unsigned half = 0; half < 2; ++half) {
      const float sum = sum_of_row<S>(softmax.sum[atom][half]);
      const float inverse = 1 / sum;
      const unsigned row = thread_row<S>(atom, half);
      KV_UNROLL
      for (unsigned n = 0; n < S::kPackets; ++n) {
        const float low = sum == 0 ? 0 : output[atom][n][2 * half] * inverse;
        const float high = sum == 0 ? 0 : output[atom][n][2 * half + 1] * inverse;
        unsigned* const word = reinterpret_cast<unsigned*>(packet_at<S>(rows, row, n));
        word[lane_index() % 4] = pack<E>(low, high);
      }
    }
  }
  sync_warp();
  const unsigned packets = static_cast<unsigned>(p.value_head_size) / kPacketLanes;
  KV_UNROLL
  for (unsigned i = 0; i < S::kWarpRows * S::kPackets / 32; ++i) {
    const unsigned at = lane_index() + i * 32;
    const unsigned row = warp_index() * S::kWarpRows + at / S::kPackets;
    const unsigned packet = at % S::kPackets;
    const bool exists = row < tile.rows || has(S::kFault, Fault::prefill_rows_past_the_end);
    if (!exists || packet >= packets) continue;
    const std::int64_t to = tensor_row(p, tile, query_row(tile, row)) * packets + packet;
    store_packet(static_cast<unsigned char*>(p.output) + to * kPacketBytes,
                 load_packet(packet_at<S>(rows, row, packet)));
  }
}

/// Waits for the stage that is due. After it no thread reads the other one any more.
template <class S>
KV_DEVICE void arrive(const QueryTile& tile) {
  if constexpr (!has(S::kFault, Fault::prefill_wait_missing)) wait_copies<0>();
  if constexpr (has(S::kFault, Fault::prefill_barrier_in_a_branch)) {
    if (warp_index() * S::kWarpRows < tile.rows) sync_block();
  } else if constexpr (!has(S::kFault, Fault::prefill_barrier_missing)) {
    sync_block();
  }
}

/// One tile: products, logits, softmax, weighted values.
template <class S>
KV_DEVICE void add_tile(const AttentionParameters& p, const EntryView& e, const QueryTile& tile,
                        const KeyTiles& keys, unsigned number, unsigned char* queries,
                        unsigned char* stage, Softmax<S>& softmax, Outputs<S>& output) {
  Scores<S> scores;
  multiply_keys<S>(scores, queries, stage);
  const Scaling scaling = scaling_of<S>(p);
  const std::int64_t first = keys.first_position + static_cast<std::int64_t>(number) * S::kKeys;
  unsigned seen = kSeesAll;
  if constexpr (!S::kWide) {
    if (!scaling.direct) seen = masked_logits<S>(scores, p, e, tile, first);
  }
  if (scaling.direct && (number < keys.all_begin || number >= keys.all_end)) {
    hide<S>(scores, p, e, tile, first);
  }
  softmax.add(scores, output, scaling.factor);
  multiply_values<S>(output, scores, stage + S::kTileBytes, seen);
}

/// All tiles of a block.
template <class S>
KV_DEVICE void add_tiles(const AttentionParameters& p, const EntryView& e, const QueryTile& tile,
                         const KeyTiles& keys, unsigned char* shared, Softmax<S>& softmax,
                         Outputs<S>& output) {
  const KeySource source = key_source(p, e, tile, keys);
  unsigned char* const queries = shared + S::kQueryAt;
  load_queries<S>(queries, p, tile);
  if constexpr (!has(S::kFault, Fault::prefill_first_tile_not_loaded)) {
    load_keys<S>(shared, source, keys, 0);
  }
  commit_copies();
  for (unsigned number = 0; number < keys.count; ++number) {
    unsigned char* const stage = shared + number % 2 * S::kStageBytes;
    unsigned char* const next = shared + (number + 1) % 2 * S::kStageBytes;
    constexpr bool kEarly = has(S::kFault, Fault::prefill_stage_too_early);
    if constexpr (!kEarly) arrive<S>(tile);
    if (number + 1 < keys.count) load_keys<S>(next, source, keys, number + 1);
    commit_copies();
    if constexpr (kEarly) {
      wait_copies<1>();
      sync_block();
    }
    add_tile<S>(p, e, tile, keys, number, queries, stage, softmax, output);
  }
}

template <class S>
KV_KERNEL void KV_LAUNCH_BOUNDS(S::kThreads, S::kBlocks) prefill_kernel(AttentionParameters p) {
  KV_SHARED_BYTES(shared);
  const QueryTile tile = query_tile<S>(p);
  if (tile.rows == 0) return;
  const EntryView& e = p.entries[tile.entry];
  const KeyTiles keys = key_tiles<S>(p, e, tile);
  Softmax<S> softmax;
  softmax.begin(p, tile);
  Outputs<S> output;
  KV_UNROLL
  for (unsigned atom = 0; atom < S::kAtoms; ++atom) {
    KV_UNROLL
    for (unsigned n = 0; n < S::kLanes / 8; ++n) {
      KV_UNROLL
      for (unsigned i = 0; i < 4; ++i) output[atom][n][i] = 0;
    }
  }
  if (keys.count > 0) add_tiles<S>(p, e, tile, keys, shared, softmax, output);
  store_rows<S>(p, tile, softmax, output, shared + S::kQueryAt);
}

}  // namespace prefill
}  // namespace
}  // namespace kvcheck::kernels::device
