// Lanes of one instruction set, through Highway. Included inside hwy's namespace of each target.
//
// What the tile kernels need of a vector and nothing else. Two keys of eight lanes each lie side by
// side in a vector of sixteen, one in a vector of eight, so that the arithmetic of every logit is
// the same for both: eight partial sums, then (0+4, 1+5, 2+6, 3+7), (0+2, 1+3), (0+1).

namespace hn = hwy::HWY_NAMESPACE;

struct Lanes {
  using D = hn::CappedTag<float, 16>;
  using V = hn::Vec<D>;
  using I = hn::RebindToSigned<D>;
  static constexpr std::int64_t kWidth = HWY_TARGET <= HWY_AVX3 ? 16 : 8;
  static constexpr std::int64_t kKeys = kWidth / 8;  ///< Keys side by side in one vector.

  static V zero() { return hn::Zero(D()); }
  static V set(float value) { return hn::Set(D(), value); }
  static V load(const float* from) { return hn::LoadU(D(), from); }
  static void store(V value, float* to) { hn::StoreU(value, D(), to); }
  static V add(V a, V b) { return hn::Add(a, b); }
  static V sub(V a, V b) { return hn::Sub(a, b); }
  static V mul(V a, V b) { return hn::Mul(a, b); }
  static V div(V a, V b) { return hn::Div(a, b); }
  static V max(V a, V b) { return hn::Max(a, b); }
  static V fma(V a, V b, V c) { return hn::MulAdd(a, b, c); }
  static V fnma(V a, V b, V c) { return hn::NegMulAdd(a, b, c); }
  /// The largest lane of each of four vectors.
  static void largest(const V* values, float* to) {
#if HWY_TARGET <= HWY_AVX3
    // As reduce(), with blocks of four left over at the end.
    const __m512 low = larger_pairs(values[0].raw, values[1].raw);
    const __m512 high = larger_pairs(values[2].raw, values[3].raw);
    __m512 most =
        _mm512_max_ps(_mm512_shuffle_ps(low, high, 0x88), _mm512_shuffle_ps(low, high, 0xdd));
    most = _mm512_max_ps(most, _mm512_shuffle_f32x4(most, most, 0x4e));
    const __m256 half = _mm512_castps512_ps256(most);
    const __m256 other = _mm256_permute2f128_ps(half, half, 1);
    _mm_storeu_ps(to, _mm256_castps256_ps128(_mm256_max_ps(half, other)));
#else
    const __m256 low = larger_pairs(values[0].raw, values[1].raw);
    const __m256 high = larger_pairs(values[2].raw, values[3].raw);
    const __m256 most =
        _mm256_max_ps(_mm256_shuffle_ps(low, high, 0x88), _mm256_shuffle_ps(low, high, 0xdd));
    const __m128 upper = _mm256_extractf128_ps(most, 1);
    _mm_storeu_ps(to, _mm_max_ps(_mm256_castps256_ps128(most), upper));
#endif
  }

  /// value where bit i of `bits` is set, `other` elsewhere.
  static V select(std::uint32_t bits, V value, V other) {
    const std::uint64_t wide = bits;
    return hn::IfThenElse(hn::LoadMaskBits(D(), reinterpret_cast<const std::uint8_t*>(&wide)),
                          value, other);
  }
  /// Bit i where a > b in lane i.
  static std::uint32_t above(V a, V b) {
    std::uint64_t bits = 0;
    hn::StoreMaskBits(D(), hn::Gt(a, b), reinterpret_cast<std::uint8_t*>(&bits));
    return static_cast<std::uint32_t>(bits);
  }
  /// `value` where a >= b or either is NaN, 0 elsewhere.
  static V unless_less(V a, V b, V value) { return hn::IfThenZeroElse(hn::Lt(a, b), value); }
  /// `value`, with every NaN replaced by the positive quiet one.
  static V one_nan(V value) {
    return hn::IfThenElse(hn::IsNaN(value), set(std::numeric_limits<float>::quiet_NaN()), value);
  }
  /// value * 2^n for the whole number n, which `shifted` = n + 1.5 * 2^23 holds as well. Exact for
  /// -126 <= n <= 127 and value from 1/2 to 2; anything finite elsewhere.
  static V times_power_of_two(V value, V n, V shifted) {
#if HWY_TARGET <= HWY_AVX3
    (void)shifted;
    return V{_mm512_scalef_ps(value.raw, n.raw)};
#else
    (void)n;
    const auto bits = hn::ShiftLeft<23>(hn::BitCast(I(), shifted));
    return mul(value, hn::BitCast(D(), hn::Add(bits, hn::Set(I(), 0x3f800000))));
#endif
  }
  static void prefetch(const std::byte* line) {
    _mm_prefetch(reinterpret_cast<const char*>(line), _MM_HINT_T0);
  }

  /// Lanes 0-7 of a query, once for each key of the vector.
  static V load_query(const float* from) {
#if HWY_TARGET <= HWY_AVX3
    return V{_mm512_broadcast_f32x8(_mm256_loadu_ps(from))};
#else
    return load(from);
#endif
  }

  // Elements of a cache as f32. load_keys takes eight lanes of each key, load_value consecutive
  // lanes of one row.
  template <class Element>
  static V load_keys(const Element* low, const Element* high) {
#if HWY_TARGET <= HWY_AVX3
    return to_float(pair(low, high));
#else
    (void)high;
    return load_value(low);
#endif
  }
  static V load_value(const float* from) { return load(from); }
  template <class Element>
  static V load_value(const Element* from) {
    return to_float(hn::LoadU(hn::Rebind<StoredAs<Element>, D>(), stored(from)));
  }
  static V load_value(const Nibbles* from) { return from_nibbles(from, from + 4); }

  /// Logits of two rows from their partial sums: vector v of each row holds key v and, in a vector
  /// of sixteen, key v + 4 beside it. Writes kWidth / 2 logits of each row, in order of the keys.
  /// By intrinsics: Highway has no shuffle of two vectors, and with blends in its place logits took
  /// KVFIG longer.
  static void reduce(const V* a, const V* b, float* to_a, float* to_b) {
#if HWY_TARGET <= HWY_AVX3
    __m512 part[4];
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) {  // Lanes i + (i+4): (a.key0, a.key1, b.key0, b.key1).
      part[v] = _mm512_add_ps(_mm512_shuffle_f32x4(a[v].raw, b[v].raw, 0x88),
                              _mm512_shuffle_f32x4(a[v].raw, b[v].raw, 0xdd));
    }
    const __m512 low = pairs(part[0], part[1]), high = pairs(part[2], part[3]);
    const __m512 sums =
        _mm512_add_ps(_mm512_shuffle_ps(low, high, 0x88), _mm512_shuffle_ps(low, high, 0xdd));
    _mm256_storeu_ps(to_a, _mm512_castps512_ps256(sums));
    _mm256_storeu_ps(to_b, _mm512_extractf32x8_ps(sums, 1));
#else
    __m256 part[4];
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) {
      part[v] = _mm256_add_ps(_mm256_permute2f128_ps(a[v].raw, b[v].raw, 0x20),
                              _mm256_permute2f128_ps(a[v].raw, b[v].raw, 0x31));
    }
    const __m256 low = pairs(part[0], part[1]), high = pairs(part[2], part[3]);
    const __m256 sums =
        _mm256_add_ps(_mm256_shuffle_ps(low, high, 0x88), _mm256_shuffle_ps(low, high, 0xdd));
    _mm_storeu_ps(to_a, _mm256_castps256_ps128(sums));
    _mm_storeu_ps(to_b, _mm256_extractf128_ps(sums, 1));
#endif
  }

 private:
  template <class Element>
  struct Storage;
  template <class Element>
  using StoredAs = typename Storage<Element>::Type;
  template <class Element>
  static const StoredAs<Element>* stored(const Element* from) {
    return reinterpret_cast<const StoredAs<Element>*>(from);
  }

  static V to_float(V value) { return value; }
  static V to_float(hn::Vec<hn::Rebind<hwy::float16_t, D>> value) {
    return hn::PromoteTo(D(), value);
  }
  static V to_float(hn::Vec<hn::Rebind<hwy::bfloat16_t, D>> value) {
    return hn::PromoteTo(D(), value);
  }
  static V to_float(hn::Vec<hn::Rebind<std::int8_t, D>> value) {
    return hn::ConvertTo(D(), hn::PromoteTo(I(), value));
  }

#if HWY_TARGET <= HWY_AVX3
  template <class Element>
  static auto pair(const Element* low, const Element* high) {
    const hn::Rebind<StoredAs<Element>, D> whole;
    const hn::Half<decltype(whole)> half;
    return hn::Combine(whole, hn::LoadU(half, stored(high)), hn::LoadU(half, stored(low)));
  }
  static V pair(const Nibbles* low, const Nibbles* high) { return from_nibbles(low, high); }
#endif

  /// Eight codes of 4 bits from four bytes at `low`, and eight more from `high`.
  static V from_nibbles(const Nibbles* low, const Nibbles* high) {
    std::int32_t words[2];
    std::memcpy(&words[0], low, 4);
    if constexpr (kWidth == 16) std::memcpy(&words[1], high, 4);
    auto word = hn::Set(I(), words[0]);
    if constexpr (kWidth == 16) word = hn::ConcatLowerLower(I(), hn::Set(I(), words[1]), word);
    alignas(64) static constexpr std::int32_t kShifts[16] = {28, 24, 20, 16, 12, 8, 4, 0,
                                                             28, 24, 20, 16, 12, 8, 4, 0};
    const auto top = hn::Shl(word, hn::Load(I(), kShifts));
    // A nibble holds code + 8: turning its highest bit round makes it the code in two's complement.
    const auto code = hn::ShiftRight<28>(hn::Xor(top, hn::Set(I(), INT32_MIN)));
    return hn::ConvertTo(D(), code);
  }

  /// Lanes i + (i+2) of every block of four: of a in the low half of the block, of b in the high.
#if HWY_TARGET <= HWY_AVX3
  static __m512 larger_pairs(__m512 a, __m512 b) {
    const __m512d left = _mm512_castps_pd(a), right = _mm512_castps_pd(b);
    return _mm512_max_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(left, right)),
                         _mm512_castpd_ps(_mm512_unpackhi_pd(left, right)));
  }
  static __m512 pairs(__m512 a, __m512 b) {
    const __m512d left = _mm512_castps_pd(a), right = _mm512_castps_pd(b);
    return _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(left, right)),
                         _mm512_castpd_ps(_mm512_unpackhi_pd(left, right)));
  }
#else
  static __m256 larger_pairs(__m256 a, __m256 b) {
    const __m256d left = _mm256_castps_pd(a), right = _mm256_castps_pd(b);
    return _mm256_max_ps(_mm256_castpd_ps(_mm256_unpacklo_pd(left, right)),
                         _mm256_castpd_ps(_mm256_unpackhi_pd(left, right)));
  }
  static __m256 pairs(__m256 a, __m256 b) {
    const __m256d left = _mm256_castps_pd(a), right = _mm256_castps_pd(b);
    return _mm256_add_ps(_mm256_castpd_ps(_mm256_unpacklo_pd(left, right)),
                         _mm256_castpd_ps(_mm256_unpackhi_pd(left, right)));
  }
#endif
};

template <>
struct Lanes::Storage<float> {
  using Type = float;
};
template <>
struct Lanes::Storage<Half> {
  using Type = hwy::float16_t;
};
template <>
struct Lanes::Storage<Bfloat> {
  using Type = hwy::bfloat16_t;
};
template <>
struct Lanes::Storage<std::int8_t> {
  using Type = std::int8_t;
};
