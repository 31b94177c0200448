// Lanes of 512 bits for the bf16 dot products. What exp-inl.h asks of lanes, and dots of pairs.

struct Lanes {
  using V = __m512;
  static constexpr int kWidth = 16;

  static V zero() { return _mm512_setzero_ps(); }
  static V set(float value) { return _mm512_set1_ps(value); }
  static V load(const float* from) { return _mm512_loadu_ps(from); }
  static void store(V value, float* to) { _mm512_storeu_ps(to, value); }
  static V sub(V a, V b) { return _mm512_sub_ps(a, b); }
  static V mul(V a, V b) { return _mm512_mul_ps(a, b); }
  static V max(V a, V b) { return _mm512_max_ps(a, b); }
  static V fma(V a, V b, V c) { return _mm512_fmadd_ps(a, b, c); }
  static V fnma(V a, V b, V c) { return _mm512_fnmadd_ps(a, b, c); }
  /// value where bit i of `bits` is set, `other` elsewhere.
  static V select(std::uint32_t bits, V value, V other) {
    return _mm512_mask_blend_ps(static_cast<__mmask16>(bits), other, value);
  }
  /// `value` where a >= b or either is NaN, 0 elsewhere.
  static V unless_less(V a, V b, V value) {
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(a, b, _CMP_NLT_UQ), value);
  }
  /// value * 2^n.
  static V times_power_of_two(V value, V n, V) { return _mm512_scalef_ps(value, n); }

  /// The largest lane of each of four vectors.
  static void largest(const V* values, float* to) {
    const V low = larger_pairs(values[0], values[1]), high = larger_pairs(values[2], values[3]);
    V most = max(_mm512_shuffle_ps(low, high, 0x88), _mm512_shuffle_ps(low, high, 0xdd));
    most = max(most, _mm512_shuffle_f32x4(most, most, 0x4e));
    most = max(most, _mm512_shuffle_f32x4(most, most, 0xb1));
    _mm_storeu_ps(to, _mm512_castps512_ps128(most));
  }

 private:
  /// Larger of lanes i and i+2 of every block of four: of a in its low half, of b in its high.
  static V larger_pairs(V a, V b) {
    const __m512d left = _mm512_castps_pd(a), right = _mm512_castps_pd(b);
    return max(_mm512_castpd_ps(_mm512_unpacklo_pd(left, right)),
               _mm512_castpd_ps(_mm512_unpackhi_pd(left, right)));
  }
};

/// Two bf16 numbers in each lane.
using Pairs = __m512i;

inline Pairs load_pairs(const std::uint32_t* from) { return _mm512_loadu_si512(from); }
inline void store_pairs(Pairs pairs, std::uint32_t* to) { _mm512_storeu_si512(to, pairs); }

/// sum + odd * odd, then + even * even: two fused steps, each rounded to nearest even; subnormal
/// operands count as zero and subnormal results become zero, whatever MXCSR says (VDPBF16PS, Intel
/// SDM volume 2).
inline Lanes::V dot(Lanes::V sum, Pairs a, Pairs b) {
  return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
}

/// 32 numbers as bf16, to nearest even, those of `low` first.
inline Pairs narrow(Lanes::V low, Lanes::V high) {
  return reinterpret_cast<Pairs>(_mm512_cvtne2ps_pbh(high, low));
}

/// The first `count` bits, all 32 from there on.
inline std::uint32_t first_bits(std::int64_t count) {
  return count >= 32 ? ~std::uint32_t{0} : (std::uint32_t{1} << count) - 1;
}

/// Up to 32 elements as bf16, zeros from `count` on.
inline Pairs load_lanes(const Bfloat* from, std::int64_t count) {
  return _mm512_maskz_loadu_epi16(first_bits(count), from);
}
inline Pairs load_lanes(const float* from, std::int64_t count) {
  const std::uint32_t there = first_bits(count);
  return narrow(_mm512_maskz_loadu_ps(static_cast<__mmask16>(there), from),
                _mm512_maskz_loadu_ps(static_cast<__mmask16>(there >> 16), from + 16));
}
