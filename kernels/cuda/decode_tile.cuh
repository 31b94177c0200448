// What one warp of the decode kernel does with one tile of keys in its shared memory: products,
// weights, sums of values. All query rows of the tile share each key and value row that is read.
//
// A lane holds eight neighbouring elements of a row; kPadded / 8 lanes make a group, which takes
// one key at a time. The groups of a warp take neighbouring keys.
#pragma once

#include <cstdint>

#include "kernels/cuda/band.cuh"
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/floats.cuh"
#include "kernels/cuda/planted.h"
#include "kernels/cuda/takes.h"
#include "kernels/cuda/tile_copy.cuh"

namespace kvcheck::kernels::device::decoding {
namespace {

/// Constants of one instantiation. Q: type of queries and outputs; C: of the cache, Q or int8.
template <class Q, class C, int kPaddedHead, int kTileRows>
struct DecodeShape {
  using Query = Q;
  using Cache = C;
  static constexpr int kPadded = kPaddedHead;
  static constexpr int kRows = kTileRows;
  static constexpr int kElementBytes = sizeof(C);
  static constexpr int kRowBytes = kPadded * kElementBytes;
  static constexpr int kKeys = decode_tile(kRowBytes);
  static constexpr int kLanes = kPadded / 8;
  static constexpr int kGroups = 32 / kLanes;
  static constexpr int kKeysAtOnce =
      8 / kRows;  ///< Of a group: eight products are reduced at once.
  static constexpr int kTileBytes = kKeys * kRowBytes;
  // Weights: each lane holds kHeld of them, rows of one key.
  static constexpr int kWeights = kRows * kKeys;
  static constexpr int kHeld = kWeights <= 32 ? 1 : kWeights / 32;
  static constexpr int kHolders = kWeights / kHeld;  ///< Lanes that hold weights.
  static constexpr int kKeyLanes = kRows / kHeld;    ///< Lanes of one key.
  // Rows lie next to each other, but in two planes where there are eight, so that a packet of four
  // is read from all banks.
  static constexpr int kPlane = kKeys * 4 + 16;
  static constexpr int kWeightFloats = kRows == 8 ? 2 * kPlane : kWeights;
};

template <class S>
KV_DEVICE int weight_place(int key, int row) {
  if constexpr (S::kRows == 8) {
    return row / 4 * S::kPlane + key * 4 + row % 4;
  } else {
    return key * S::kRows + row;
  }
}

/// The rows [first, first + kCount) of one key's weights: one or two planes.
template <class S, int kCount>
KV_DEVICE void load_weights(const float* weights, int key, int first, float* to) {
  load_floats<kCount>(weights + weight_place<S>(key, first), to);
  if constexpr (kCount == 8) load_floats<4>(weights + weight_place<S>(key, 4), to + 4);
}
template <class S, int kCount>
KV_DEVICE void store_weights(float* weights, int key, int first, const float* from) {
  store_floats<kCount>(weights + weight_place<S>(key, first), from);
  if constexpr (kCount == 8) store_floats<4>(weights + weight_place<S>(key, 4), from + 4);
}

/// Eight neighbouring elements of shared memory.
template <class C>
KV_DEVICE void load_eight(const unsigned char* from, float (&to)[8]) {
  if constexpr (sizeof(C) == 2) {
    const Packet packet = load_packet(from);
    KV_UNROLL
    for (int i = 0; i < 4; ++i) {
      const Pair pair = unpack<C>(packet.word[i]);
      to[2 * i] = pair.low;
      to[2 * i + 1] = pair.high;
    }
  } else {
    // A byte b of a signed code, its top bit turned, below the exponent of 2^23: 2^23 + 128 + b.
    const std::uint64_t codes = *reinterpret_cast<const std::uint64_t*>(from) ^ 0x8080808080808080u;
    KV_UNROLL
    for (int i = 0; i < 8; ++i) {
      const std::uint32_t code = static_cast<std::uint32_t>(codes >> (8 * i)) & 0xffu;
      to[i] = float_of_bits(0x4b000000u | code) - 8388736.f;
    }
  }
}

/// How tiles lie; the fault reads eight lanes at once from the same four banks.
template <Fault kFault>
constexpr Layout kDecodeLayout = has(kFault, Fault::decode_bank_stride) ? Layout::columns
                                                                        : Layout::rows;

/// Where the eight elements of a key's row lie that are part `part` of it.
template <class S, Fault kFault>
KV_DEVICE unsigned element_place(unsigned key, unsigned part) {
  if constexpr (S::kElementBytes == 2) {
    return packet_place<S::kKeys, S::kRowBytes, kDecodeLayout<kFault>>(key, part);
  } else {
    return key * S::kRowBytes + part * 8;
  }
}

/// Sums of each of eight values over the kLanes lanes of a group, pairwise. Value i is returned to
/// lanes [i * kLanes / 8, (i + 1) * kLanes / 8) of the group.
template <int kLanes, Fault kFault>
KV_DEVICE float reduce_eight(float (&value)[8]) {
  const unsigned part = lane_index() % kLanes;
  KV_UNROLL
  for (int half = 4, bit = kLanes / 2; half >= 1; half /= 2, bit /= 2) {
    const bool upper = (part & bit) != 0;
    KV_UNROLL
    for (int i = 0; i < half; ++i) {
      const float given = upper ? value[i] : value[i + half];
      const float kept = upper ? value[i + half] : value[i];
      const unsigned mask = has(kFault, Fault::decode_shuffle_mask) ? 0x7fffffffu : kAllLanes;
      value[i] = kept + shuffle_xor(mask, given, bit);
    }
  }
  KV_UNROLL
  for (int bit = kLanes / 16; bit >= 1; bit /= 2) {
    value[0] += shuffle_xor(kAllLanes, value[0], bit);
  }
  return value[0];
}

/// Products q.k of all keys and rows of the tile, to their places among the weights.
template <class S, Fault kFault>
KV_DEVICE void multiply_keys(const float (&query)[S::kRows][8], const unsigned char* keys,
                             float* products) {
  const int group = lane_index() / S::kLanes, part = lane_index() % S::kLanes;
  constexpr int kStep = S::kGroups * S::kKeysAtOnce;
  for (int first = 0; first < S::kKeys; first += kStep) {
    float sum[8];
    KV_UNROLL
    for (int u = 0; u < S::kKeysAtOnce; ++u) {
      const int key = first + u * S::kGroups + group;
      float element[8];
      load_eight<typename S::Cache>(keys + element_place<S, kFault>(key, part), element);
      KV_UNROLL
      for (int r = 0; r < S::kRows; ++r) {
        float product = query[r][0] * element[0];
        KV_UNROLL
        for (int c = 1; c < 8; ++c) product = fused(query[r][c], element[c], product);
        sum[u * S::kRows + r] = product;
      }
    }
    const float product = reduce_eight<S::kLanes, kFault>(sum);
    constexpr int kCopies = S::kLanes / 8;
    const int which = part / kCopies;
    const int key = first + which / S::kRows * S::kGroups + group;
    if (part % kCopies == 0) products[weight_place<S>(key, which % S::kRows)] = product;
  }
}

/// Adds weight * value over the keys of the tile. kClean: every row sees every key; otherwise a
/// weight of 0 adds nothing, whatever the value is.
template <class S, bool kClean, Fault kFault>
KV_DEVICE void add_values(const float* weights, const unsigned char* values,
                          float (&output)[S::kRows][8]) {
  const int group = lane_index() / S::kLanes, part = lane_index() % S::kLanes;
  for (int first = 0; first < S::kKeys; first += S::kGroups) {
    const int key = first + group;
    float weight[S::kRows];
    load_weights<S, S::kRows>(weights, key, 0, weight);
    float element[8];
    load_eight<typename S::Cache>(values + element_place<S, kFault>(key, part), element);
    KV_UNROLL
    for (int r = 0; r < S::kRows; ++r) {
      if (!kClean && weight[r] == 0.f) continue;
      KV_UNROLL
      for (int c = 0; c < 8; ++c) output[r][c] = fused(weight[r], element[c], output[r][c]);
    }
  }
}

}  // namespace
}  // namespace kvcheck::kernels::device::decoding
