// Logits of a tile and the softmax in one pass over tiles, in base 2, in registers.
#pragma once

#include "kernels/cuda/prefill_tile.cuh"

namespace kvcheck::kernels::device {
namespace {
namespace prefill {

constexpr float kLog2e = 1.44269504F;
constexpr float kNoLogit = -__builtin_huge_valf();

/// How products become base-2 logits. Without mask and cap and with a positive scale they do it in
/// the exponential; otherwise they have become logits before.
struct Scaling {
  bool direct;
  float factor;  ///< What the exponential multiplies with.
};

template <class S>
KV_DEVICE Scaling scaling_of(const AttentionParameters& p) {
  const bool direct = S::kWide || (p.scale > 0 && p.softcap == 0 && p.mask_kind == MaskKind::none);
  return {direct, direct ? p.scale * kLog2e : 1};
}

/// Rows of this thread: `half` 0 is row g of an atom, 1 is row g + 8.
template <class S>
KV_DEVICE unsigned thread_row(unsigned atom, unsigned half) {
  return warp_index() * S::kWarpRows + atom * 16 + half * 8 + lane_index() / 4;
}

/// Key of a tile to which number `i` of d number `n` belongs.
KV_DEVICE int thread_key(unsigned n, unsigned i) {
  return static_cast<int>(n * 8 + lane_index() % 4 * 2 + i % 2);
}

/// Hides what the rows of the warp do not see of a tile that begins at `first`.
template <class S>
KV_DEVICE void hide(Scores<S>& scores, const AttentionParameters& p, const EntryView& e,
                    const QueryTile& tile, std::int64_t first) {
  const TileSight sight = tile_sight<S>(p, e, tile, first);
  KV_UNROLL
  for (unsigned atom = 0; atom < S::kAtoms; ++atom) {
    KV_UNROLL
    for (unsigned half = 0; half < 2; ++half) {
      const RowSight seen = row_sight<S>(sight, tile, thread_row<S>(atom, half));
      KV_UNROLL
      for (unsigned n = 0; n < S::kKeys / 8; ++n) {
        KV_UNROLL
        for (unsigned i = 2 * half; i < 2 * half + 2; ++i) {
          const int key = thread_key(n, i);
          if (key < seen.low || key >= seen.high) scores[atom][n][i] = kNoLogit;
        }
      }
    }
  }
}

/// What the mask adds to one logit in base e; -infinity hides the key.
template <class E>
KV_DEVICE float mask_bias_at(const AttentionParameters& p, std::int64_t at) {
  if (p.mask_kind == MaskKind::none) return 0;
  if (p.mask_kind == MaskKind::additive) return to_float(static_cast<const E*>(p.mask)[at]);
  return static_cast<const unsigned char*>(p.mask)[at] != 0 ? 0 : kNoLogit;
}

KV_DEVICE float logit_of(const AttentionParameters& p, float product, float bias) {
  float logit = product * p.scale;
  if (p.softcap != 0) logit = p.softcap * tanh_of(logit / p.softcap);
  return fused(bias, kLog2e, logit * kLog2e);
}

/// Makes base-2 logits of the products of one row, hidden keys included. \param bits gets those of
/// the keys that the row sees
template <class S>
KV_DEVICE void row_logits(Scores<S>& scores, unsigned half, const AttentionParameters& p,
                          const RowSight& seen, std::int64_t mask_at, unsigned& bits) {
  KV_UNROLL
  for (unsigned n = 0; n < S::kKeys / 8; ++n) {
    KV_UNROLL
    for (unsigned i = 2 * half; i < 2 * half + 2; ++i) {
      const int key = thread_key(n, i);
      float logit = kNoLogit;
      if (key >= seen.low && key < seen.high) {
        const float bias = mask_bias_at<typename S::Element>(p, mask_at + key);
        if (bias != kNoLogit) {
          logit = logit_of(p, scores[0][n][i], bias);
          bits |= 1u << (2 * n + i % 2);
        }
      }
      scores[0][n][i] = logit;
    }
  }
}

/// Every other path: masks, caps, and scales that are not positive. \return the bits of kSeesAll
template <class S>
KV_DEVICE unsigned masked_logits(Scores<S>& scores, const AttentionParameters& p,
                                 const EntryView& e, const QueryTile& tile, std::int64_t first) {
  static_assert(S::kAtoms == 1);
  const TileSight sight = tile_sight<S>(p, e, tile, first);
  unsigned bits = 0;
  KV_UNROLL
  for (unsigned half = 0; half < 2; ++half) {
    const unsigned row = thread_row<S>(0, half);
    const QueryRow at = query_row(tile, row);
    const std::int64_t mask_at = tile.entry * p.mask_entry_stride + at.head * p.mask_head_stride +
                                 at.query * p.mask_query_stride + first;
    row_logits<S>(scores, half, p, row_sight<S>(sight, tile, row), mask_at, bits);
  }
  KV_UNROLL
  for (unsigned by = 4; by < 32; by *= 2) bits |= shuffle_xor(kAllLanes, bits, by);
  return has(S::kFault, Fault::prefill_hidden_value_kept) ? kSeesAll : bits;
}

/// Largest of the four lanes that hold a row, or their sum.
template <class S>
KV_DEVICE float largest_of_row(float value) {
  constexpr unsigned kMask = has(S::kFault, Fault::prefill_half_a_mask) ? 0xffffu : kAllLanes;
  value = larger(value, shuffle_xor(kMask, value, 1));
  return larger(value, shuffle_xor(kMask, value, 2));
}
template <class S>
KV_DEVICE float sum_of_row(float value) {
  value += shuffle_xor(kAllLanes, value, 1);
  if constexpr (has(S::kFault, Fault::prefill_half_a_sum)) return value;
  return value + shuffle_xor(kAllLanes, value, 2);
}

/// The softmax so far of the rows of one thread.
template <class S>
struct Softmax {
  float top[S::kAtoms][2];  ///< Largest base-2 logit, rounded as it is subtracted.
  float sum[S::kAtoms][2];  ///< Of the weights of this lane's keys.

  /// Rows begin with their sink, which one of the four lanes counts.
  KV_DEVICE void begin(const AttentionParameters& p, const QueryTile& tile) {
    KV_UNROLL
    for (unsigned atom = 0; atom < S::kAtoms; ++atom) {
      KV_UNROLL
      for (unsigned half = 0; half < 2; ++half) {
        float logit = kNoLogit;
        if (p.sinks != nullptr) {
          logit = p.sinks[query_row(tile, thread_row<S>(atom, half)).head] * kLog2e;
        }
        top[atom][half] = logit;
        sum[atom][half] = logit != kNoLogit && lane_index() % 4 == 0 ? 1 : 0;
      }
    }
  }

  /// Turns logits (products, where scaling is direct) into weights and brings sums and outputs to
  /// the new maximum. Where no maximum of the warp has risen all factors are 1 and are left out.
  KV_DEVICE void add(Scores<S>& scores, Outputs<S>& output, float factor) {
    KV_UNROLL
    for (unsigned atom = 0; atom < S::kAtoms; ++atom) {
      float shrunk[2];
      bool rises = false;
      KV_UNROLL
      for (unsigned half = 0; half < 2; ++half) {
        float largest = scores[atom][0][2 * half];
        KV_UNROLL
        for (unsigned n = 0; n < S::kKeys / 8; ++n) {
          largest =
              larger(largest, larger(scores[atom][n][2 * half], scores[atom][n][2 * half + 1]));
        }
        const float before = top[atom][half];
        const float after = larger(before, largest_of_row<S>(largest) * factor);
        // A row that has seen nothing has no maximum to subtract.
        const float shift = after == kNoLogit ? 0 : after;
        shrunk[half] = exp2_approx(before - shift);
        rises |= after != before;
        top[atom][half] = after;
        float added = 0;
        KV_UNROLL
        for (unsigned n = 0; n < S::kKeys / 8; ++n) {
          KV_UNROLL
          for (unsigned i = 2 * half; i < 2 * half + 2; ++i) {
            scores[atom][n][i] = exp2_approx(fused(scores[atom][n][i], factor, -shift));
            added += scores[atom][n][i];
          }
        }
        sum[atom][half] = fused(sum[atom][half], shrunk[half], added);
      }
      if constexpr (has(S::kFault, Fault::prefill_rescale_skipped)) continue;
      if (!any_of(kAllLanes, rises)) continue;
      KV_UNROLL
      for (unsigned n = 0; n < S::kLanes / 8; ++n) {
        KV_UNROLL
        for (unsigned i = 0; i < 4; ++i) output[atom][n][i] *= shrunk[i / 2];
      }
    }
  }
};

}  // namespace prefill
}  // namespace
}  // namespace kvcheck::kernels::device
