// What one warp of the matrix decode kernel does with one tile of keys: products on matrix units,
// weights in registers, sums of values on matrix units.
//
// The sixteen query rows of a block are the rows of every mma (m16n8k16). Of its results a lane
// holds rows lane / 4 and lane / 4 + 8, columns 2 * (lane % 4) and the next one.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/cuda/band.cuh"
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/merge.cuh"
#include "kernels/cuda/planted.h"
#include "kernels/cuda/row_tile.cuh"
#include "kernels/cuda/takes.h"
#include "kernels/cuda/tile_copy.cuh"

namespace kvcheck::kernels::device::decoding {
namespace {

/// Constants of one instantiation; E: type of queries, cache and outputs.
template <class E, int kPaddedHead, Fault kPlanted>
struct MatrixShape {
  using Element = E;
  static constexpr Fault kFault = kPlanted;
  static constexpr int kPadded = kPaddedHead;
  static constexpr int kRows = 16;
  static constexpr int kKeys = decode_matrix_tile(kPadded);
  static constexpr int kRowBytes = kPadded * 2;
  static constexpr int kTileBytes = kKeys * kRowBytes;
  static constexpr int kPackets = kRowBytes / 16;
  static constexpr int kKeyTiles = kKeys / 8;      ///< mma columns of the products.
  static constexpr int kHeadSteps = kPadded / 16;  ///< mma steps of a product.
  static constexpr int kValueTiles = kPadded / 8;  ///< mma columns of the outputs.
  /// Floats from one key's weights to the next where they are set aside: rows, and four more, so
  /// that what lanes write at once lies in different banks.
  static constexpr int kAside = kRows + 4;
  static constexpr Layout kLayout =
      has(kPlanted, Fault::matrix_bank_stride) ? Layout::rows : Layout::swizzled;
  static constexpr bool kHalf = std::is_same_v<E, F16>;
  static constexpr unsigned kExponent = kHalf ? 0x7c00u : 0x7f80u;
  /// Weights in f16 are stored 2^15 times as large, so that those below 2^-14 keep their digits.
  static constexpr float kWeightScale = kHalf ? 32768.f : 1.f;
};

/// Sums of the output rows and weights, as the results of an mma lie.
template <class S>
using OutputFragments = float[S::kValueTiles][4];
template <class S>
using WeightFragments = float[S::kKeyTiles][4];

/// Of the two rows that a lane holds.
struct MatrixState {
  float maximum[2] = {kMinusInfinity, kMinusInfinity};
  float sum[2] = {0.f, 0.f};
};

/// Packet `first + own` of a row of a tile. `first` is a constant multiple of what `own`, which
/// differs between lanes, is below: so one value for each lane serves all columns.
template <class S>
KV_DEVICE const unsigned char* packet_of(const unsigned char* tile, unsigned row, unsigned first,
                                         unsigned own = 0) {
  if constexpr (S::kLayout == Layout::swizzled) {
    const unsigned turned = (first % 8 ^ (own ^ (row & 7u))) * 16;
    return tile + (row * S::kRowBytes + turned) + first / 8 * 128;
  } else {
    return tile + packet_place<S::kKeys, S::kRowBytes, S::kLayout>(row, first + own);
  }
}

/// Products q.k of all rows and keys. The query rows lie in shared memory as tiles do.
template <class S>
KV_DEVICE void matrix_multiply_keys(const unsigned char* queries, const unsigned char* keys,
                                    WeightFragments<S>& product) {
  using E = typename S::Element;
  const unsigned lane = lane_index();
  KV_UNROLL
  for (int n = 0; n < S::kKeyTiles; ++n) {
    KV_UNROLL
    for (int i = 0; i < 4; ++i) product[n][i] = 0.f;
  }
  KV_UNROLL
  for (int step = 0; step < S::kHeadSteps; step += 2) {
    unsigned query[2][4];
    load_matrix_x4(query[0], packet_of<S>(queries, lane % 16, step * 2, lane / 16));
    load_matrix_x4(query[1], packet_of<S>(queries, lane % 16, step * 2 + 2, lane / 16));
    KV_UNROLL
    for (int n = 0; n < S::kKeyTiles; ++n) {
      unsigned key[4];
      load_matrix_x4(key, packet_of<S>(keys, n * 8 + lane % 8, step * 2, lane / 8));
      const unsigned first[2] = {key[0], key[1]}, second[2] = {key[2], key[3]};
      multiply_add<E>(product[n], query[0], first);
      multiply_add<E>(product[n], query[1], second);
    }
  }
}

/// Turns products into logits; what a row does not see becomes minus infinity.
template <class S>
KV_DEVICE void matrix_mask_keys(const AttentionParameters& p, const RowView* rows,
                                const LogitScale& by, std::int64_t first_position, bool clean,
                                WeightFragments<S>& weight) {
  const int column = lane_index() % 4 * 2;
  KV_UNROLL
  for (int half = 0; half < 2; ++half) {
    const RowView& row = rows[lane_index() / 4 + half * 8];
    KV_UNROLL
    for (int n = 0; n < S::kKeyTiles; ++n) {
      KV_UNROLL
      for (int i = 0; i < 2; ++i) {
        float& logit = weight[n][half * 2 + i];
        logit = base_two_logit(by, logit);
        if (clean) continue;
        const std::int64_t position = first_position + n * 8 + column + i;
        const bool seen = position >= row.band.begin && position < row.band.end;
        logit =
            seen ? masked_logit<typename S::Element>(p, row.mask, position, logit) : kMinusInfinity;
      }
    }
  }
}

/// Turns logits into weights and rescales what was summed before.
template <class S>
KV_DEVICE void matrix_weigh_keys(MatrixState& state, WeightFragments<S>& weight,
                                 OutputFragments<S>& output) {
  float factor[2];
  bool rises = false;
  KV_UNROLL
  for (int half = 0; half < 2; ++half) {
    float largest = kMinusInfinity;
    KV_UNROLL
    for (int n = 0; n < S::kKeyTiles; ++n) {
      largest = larger(largest, larger(weight[n][half * 2], weight[n][half * 2 + 1]));
    }
    largest = larger(largest, shuffle_xor(kAllLanes, largest, 1));
    largest = larger(largest, shuffle_xor(kAllLanes, largest, 2));
    const float before = state.maximum[half];
    const float maximum = larger(before, largest);
    factor[half] = maximum > before ? part_factor(before, maximum) : 1.f;
    rises |= maximum > before;
    float sum = state.sum[half] * factor[half];
    KV_UNROLL
    for (int n = 0; n < S::kKeyTiles; ++n) {
      KV_UNROLL
      for (int i = 0; i < 2; ++i) {
        float& own = weight[n][half * 2 + i];
        own = own == kMinusInfinity ? 0.f : exp2_approx(own - maximum);
        sum += own;
      }
    }
    state.maximum[half] = maximum;
    state.sum[half] = sum;
  }
  if (!any_of(kAllLanes, rises)) return;
  KV_UNROLL
  for (int d = 0; d < S::kValueTiles; ++d) {
    KV_UNROLL
    for (int i = 0; i < 4; ++i) output[d][i] *= factor[i / 2];
  }
}

/// Adds weight * value over the keys of the tile, the weights rounded to the element type.
template <class S>
KV_DEVICE void matrix_add_values(const WeightFragments<S>& weight, const unsigned char* values,
                                 OutputFragments<S>& output) {
  using E = typename S::Element;
  const unsigned lane = lane_index();
  const auto stored = [&](int n, int half) {
    return pack<E>(weight[n][half * 2] * S::kWeightScale,
                   weight[n][half * 2 + 1] * S::kWeightScale);
  };
  constexpr int kUpper = has(S::kFault, Fault::matrix_rows_swapped) ? 0 : 1;
  KV_UNROLL
  for (int n = 0; n < S::kKeyTiles; n += 2) {
    const unsigned a[4] = {stored(n, 1 - kUpper), stored(n, kUpper), stored(n + 1, 1 - kUpper),
                           stored(n + 1, kUpper)};
    KV_UNROLL
    for (int d = 0; d < S::kValueTiles; d += 2) {
      unsigned value[4];
      load_matrix_x4_transposed(value, packet_of<S>(values, n * 8 + lane % 16, d, lane / 16));
      const unsigned first[2] = {value[0], value[1]}, second[2] = {value[2], value[3]};
      multiply_add<E>(output[d], a, first);
      multiply_add<E>(output[d + 1], a, second);
    }
  }
}

template <class S>
KV_DEVICE bool not_finite(unsigned element) {
  return (element & S::kExponent) == S::kExponent;
}

/// Whether the warp's tile holds an element that is not finite.
template <class S>
KV_DEVICE bool holds_not_finite(const unsigned char* tile) {
  bool found = false;
  for (int at = lane_index(); at < S::kKeys * S::kPackets; at += 32) {
    const Packet packet = load_packet(tile + at * 16);
    KV_UNROLL
    for (int i = 0; i < 4; ++i) {
      found |= not_finite<S>(packet.word[i]) || not_finite<S>(packet.word[i] >> 16);
    }
  }
  return any_of(kAllLanes, found);
}

/// A value that is not finite must not meet the weight 0 of a row that does not see its key. Here
/// such values are added to the rows that see them, and taken out of the tile. `weights`: shared
/// memory of the warp, kAside floats for each key.
template <class S>
KV_DEVICE void set_aside_not_finite(const WeightFragments<S>& weight, unsigned char* values,
                                    float* weights, OutputFragments<S>& output) {
  const int row = lane_index() / 4, column = lane_index() % 4 * 2;
  sync_warp();
  KV_UNROLL
  for (int n = 0; n < S::kKeyTiles; ++n) {
    KV_UNROLL
    for (int i = 0; i < 4; ++i) {
      weights[(n * 8 + column + i % 2) * S::kAside + row + i / 2 * 8] = weight[n][i];
    }
  }
  sync_warp();
  for (int key = 0; key < S::kKeys; ++key) {
    const float upper = weights[key * S::kAside + row], lower = weights[key * S::kAside + row + 8];
    KV_UNROLL
    for (int d = 0; d < S::kValueTiles; ++d) {
      const unsigned both =
          *reinterpret_cast<const unsigned*>(packet_of<S>(values, key, d) + column * 2);
      const Pair value = unpack<typename S::Element>(both);
      if (not_finite<S>(both)) {
        if (upper != 0.f) output[d][0] = fused(upper, value.low, output[d][0]);
        if (lower != 0.f) output[d][2] = fused(lower, value.low, output[d][2]);
      }
      if (not_finite<S>(both >> 16)) {
        if (upper != 0.f) output[d][1] = fused(upper, value.high, output[d][1]);
        if (lower != 0.f) output[d][3] = fused(lower, value.high, output[d][3]);
      }
    }
  }
  sync_warp();
  for (int at = lane_index(); at < S::kKeys * S::kPackets; at += 32) {
    Packet packet = load_packet(values + at * 16);
    KV_UNROLL
    for (int i = 0; i < 4; ++i) {
      if (not_finite<S>(packet.word[i])) packet.word[i] &= 0xffff0000u;
      if (not_finite<S>(packet.word[i] >> 16)) packet.word[i] &= 0x0000ffffu;
    }
    store_packet(values + at * 16, packet);
  }
  sync_warp();
}

}  // namespace
}  // namespace kvcheck::kernels::device::decoding
