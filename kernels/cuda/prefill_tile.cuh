// Tiles of prefill in shared memory and what matrix units make of them.
//
// Fragments of m16n8k16, lane = 4 g + t: a holds rows g and g + 8, columns 2t, 2t + 1 and those
// plus 8; b holds columns (keys, or lanes of values) g, rows 2t, 2t + 1 and those plus 8; d holds
// rows g and g + 8, columns 2t and 2t + 1. Two d side by side are therefore one a.
#pragma once

#include "kernels/cuda/prefill_band.cuh"

namespace kvcheck::kernels::device {
namespace {
namespace prefill {

/// Base-2 logits, then weights: 8 keys of a tile to each d.
template <class S>
using Scores = float[S::kAtoms][S::kKeys / 8][4];
template <class S>
using Outputs = float[S::kAtoms][S::kLanes / 8][4];

/// Begins to copy rows [low, high) of a tile, the rest becomes zeros. A thread copies one column of
/// packets. \param rows where row 0 of the tile lies or would lie; rows that are not copied are not
/// touched \param packets of a row in global memory
template <class S>
KV_DEVICE void load_tile(unsigned char* tile, const unsigned char* rows, unsigned packets,
                         unsigned low, unsigned high) {
  const unsigned rows_at_once = threads_of_block<S>() / S::kPackets;
  const std::int64_t row_bytes = static_cast<std::int64_t>(packets) * kPacketBytes;
  const unsigned first = thread_index() / S::kPackets;
  const unsigned packet = thread_index() % S::kPackets;
  if (has(S::kFault, Fault::prefill_tail_uninitialised) && packet >= packets) return;
  const unsigned char* from = rows + first * row_bytes + packet * kPacketBytes;
  KV_UNROLL
  for (unsigned i = 0; i < S::kKeys / rows_at_once; ++i) {
    const unsigned row = first + i * rows_at_once;
    const bool read = row >= low && row < high && packet < packets;
    copy_async(packet_at<S>(tile, row, packet), from, read ? static_cast<int>(kPacketBytes) : 0);
    from += rows_at_once * row_bytes;
  }
}

/// Keys and values of one KV head as a block copies them.
struct KeySource {
  const unsigned char *key, *value;  ///< Of row 0 of tile 0, which may lie before the buffer.
  unsigned key_packets, value_packets;
};

KV_DEVICE KeySource key_source(const AttentionParameters& p, const EntryView& e,
                               const QueryTile& tile, const KeyTiles& keys) {
  const std::int64_t row = keys.first_position - e.first_position;
  const unsigned key_packets = static_cast<unsigned>(p.head_size) / kPacketLanes;
  const unsigned value_packets = static_cast<unsigned>(p.value_head_size) / kPacketLanes;
  return {static_cast<const unsigned char*>(e.key) + tile.kv_head * e.key_head_stride +
              row * key_packets * kPacketBytes,
          static_cast<const unsigned char*>(e.value) + tile.kv_head * e.value_head_stride +
              row * value_packets * kPacketBytes,
          key_packets, value_packets};
}

template <class S>
KV_DEVICE void load_keys(unsigned char* stage, const KeySource& from, const KeyTiles& keys,
                         unsigned number) {
  const unsigned low = number == 0 ? keys.head : 0;
  const unsigned high = number + 1 == keys.count ? keys.tail : S::kKeys;
  const std::int64_t row = static_cast<std::int64_t>(number) * S::kKeys * kPacketBytes;
  load_tile<S>(stage, from.key + row * from.key_packets, from.key_packets, low, high);
  load_tile<S>(stage + S::kTileBytes, from.value + row * from.value_packets, from.value_packets,
               low, high);
}

/// The same for the query rows of the block.
template <class S>
KV_DEVICE void load_queries(unsigned char* queries, const AttentionParameters& p,
                            const QueryTile& tile) {
  const unsigned packets = static_cast<unsigned>(p.head_size) / kPacketLanes;
  // Rows and threads of a block are in one proportion, so every thread copies the same number.
  KV_UNROLL
  for (unsigned i = 0; i < S::kWarpRows * S::kPackets / 32; ++i) {
    const unsigned at = thread_index() + i * threads_of_block<S>();
    const unsigned row = at / S::kPackets;
    const unsigned packet = at % S::kPackets;
    const bool read = row < tile.rows && packet < packets;
    const std::int64_t from =
        read ? tensor_row(p, tile, query_row(tile, row)) * packets + packet : 0;
    copy_async(packet_at<S>(queries, row, packet),
               static_cast<const unsigned char*>(p.query) + from * kPacketBytes,
               read ? static_cast<int>(kPacketBytes) : 0);
  }
}

/// Fragments of the warp's query rows, of one step of 16 lanes.
template <class S>
KV_DEVICE void read_queries(unsigned (&a)[S::kAtoms][4], unsigned char* queries, unsigned step) {
  KV_UNROLL
  for (unsigned atom = 0; atom < S::kAtoms; ++atom) {
    const unsigned row = warp_index() * S::kWarpRows + atom * 16 + lane_index() % 16;
    load_matrix_x4(a[atom], packet_at<S>(queries, row, 2 * step + lane_index() / 16));
    if constexpr (has(S::kFault, Fault::prefill_rows_swapped)) {
      const unsigned kept = a[atom][1];
      a[atom][1] = a[atom][0];
      a[atom][0] = kept;
    }
  }
}

/// q.k of the warp's rows and a tile of keys.
template <class S>
KV_DEVICE void multiply_keys(Scores<S>& scores, unsigned char* queries, unsigned char* keys) {
  KV_UNROLL
  for (unsigned atom = 0; atom < S::kAtoms; ++atom) {
    KV_UNROLL
    for (unsigned n = 0; n < S::kKeys / 8; ++n) {
      KV_UNROLL
      for (unsigned i = 0; i < 4; ++i) scores[atom][n][i] = 0;
    }
  }
  const unsigned row = lane_index() / 16 * 8 + lane_index() % 8;
  KV_UNROLL
  for (unsigned step = 0; step < S::kLanes / 16; ++step) {
    unsigned a[S::kAtoms][4];
    read_queries<S>(a, queries, step);
    KV_UNROLL
    for (unsigned n = 0; n < S::kKeys / 8; n += 2) {
      unsigned r[4];
      load_matrix_x4(r, packet_at<S>(keys, n * 8 + row, 2 * step + lane_index() / 8 % 2));
      const unsigned left[2] = {r[0], r[1]};
      const unsigned right[2] = {r[2], r[3]};
      KV_UNROLL
      for (unsigned atom = 0; atom < S::kAtoms; ++atom) {
        multiply_add<typename S::Element>(scores[atom][n], a[atom], left);
        multiply_add<typename S::Element>(scores[atom][n + 1], a[atom], right);
      }
    }
  }
}

/// Which keys of a tile the warp sees at all, for one lane: bits 2n and 2n + 1 are keys 8n + 2t and
/// 8n + 2t + 1.
constexpr unsigned kSeesAll = 0xffff;

/// Words that keep a fragment of values where the warp sees the key and make it 0 elsewhere:
/// whatever lies there, weight 0 times it would not be 0.
KV_DEVICE unsigned kept_values(unsigned seen, unsigned n) {
  return (seen >> (2 * n) & 1 ? 0xffffu : 0) | (seen >> (2 * n + 1) & 1 ? 0xffff0000u : 0);
}

template <class S>
KV_DEVICE void load_values(unsigned (&r)[4], unsigned char* values, unsigned row, unsigned packet) {
  if constexpr (has(S::kFault, Fault::prefill_values_not_transposed)) {
    load_matrix_x4(r, packet_at<S>(values, row, packet));
  } else {
    load_matrix_x4_transposed(r, packet_at<S>(values, row, packet));
  }
}

/// Weights of 16 keys, rounded, as a fragment.
template <class S>
KV_DEVICE void weights_of(unsigned (&a)[4], const float (&low)[4], const float (&high)[4]) {
  using E = typename S::Element;
  a[0] = pack<E>(low[0], low[1]);
  a[1] = pack<E>(low[2], low[3]);
  a[2] = pack<E>(high[0], high[1]);
  a[3] = pack<E>(high[2], high[3]);
}

/// Adds the weights of a tile times its values.
template <class S>
KV_DEVICE void multiply_values(Outputs<S>& output, const Scores<S>& weights, unsigned char* values,
                               unsigned seen) {
  constexpr unsigned kOther = has(S::kFault, Fault::prefill_wrong_half) ? 0 : 1;
  KV_UNROLL
  for (unsigned step = 0; step < S::kKeys / 16; ++step) {
    unsigned a[S::kAtoms][4];
    KV_UNROLL
    for (unsigned atom = 0; atom < S::kAtoms; ++atom) {
      weights_of<S>(a[atom], weights[atom][2 * step], weights[atom][2 * step + kOther]);
    }
    const unsigned low = kept_values(seen, 2 * step);
    const unsigned high = kept_values(seen, 2 * step + 1);
    const unsigned row = step * 16 + lane_index() % 16;
    KV_UNROLL
    for (unsigned n = 0; n < S::kLanes / 8; n += 2) {
      unsigned r[4];
      load_values<S>(r, values, row, n + lane_index() / 16);
      const unsigned left[2] = {r[0] & low, r[1] & high};
      const unsigned right[2] = {r[2] & low, r[3] & high};
      KV_UNROLL
      for (unsigned atom = 0; atom < S::kAtoms; ++atom) {
        multiply_add<typename S::Element>(output[atom][n], a[atom], left);
        multiply_add<typename S::Element>(output[atom][n + 1], a[atom], right);
      }
    }
  }
}

}  // namespace prefill
}  // namespace
}  // namespace kvcheck::kernels::device
