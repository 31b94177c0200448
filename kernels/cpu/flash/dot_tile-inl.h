// One tile in pairs of bf16: packing keys and values, their products. Included after the lanes.

/// Rows of one tile that are there: [begin, end) of kTile.
struct TileRows {
  const std::byte* first;  ///< Row 0 of the tile, which need not be there.
  std::int64_t row_bytes;
  std::int64_t begin, end;
  std::int64_t lanes;

  /// Lanes [lane, lane + 32) of one row, zeros where there are none.
  Pairs load(std::int64_t row, std::int64_t lane) const {
    if (row < begin || row >= end || lane >= lanes) return _mm512_setzero_si512();
    return load_lanes(reinterpret_cast<const Bfloat*>(first + row * row_bytes) + lane,
                      lanes - lane);
  }
};

/// Makes columns of 16 rows of 16 pairs.
inline void transpose(Pairs* rows) {
  Pairs half[16];
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    half[i] = _mm512_unpacklo_epi32(rows[i], rows[i + 1]);
    half[i + 1] = _mm512_unpackhi_epi32(rows[i], rows[i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    rows[i] = _mm512_unpacklo_epi64(half[i], half[i + 2]);
    rows[i + 1] = _mm512_unpackhi_epi64(half[i], half[i + 2]);
    rows[i + 2] = _mm512_unpacklo_epi64(half[i + 1], half[i + 3]);
    rows[i + 3] = _mm512_unpackhi_epi64(half[i + 1], half[i + 3]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    half[i] = _mm512_shuffle_i32x4(rows[i], rows[i + 4], 0x88);
    half[i + 4] = _mm512_shuffle_i32x4(rows[i], rows[i + 4], 0xdd);
    half[i + 8] = _mm512_shuffle_i32x4(rows[i + 8], rows[i + 12], 0x88);
    half[i + 12] = _mm512_shuffle_i32x4(rows[i + 8], rows[i + 12], 0xdd);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    rows[i] = _mm512_shuffle_i32x4(half[i], half[i + 8], 0x88);
    rows[i + 8] = _mm512_shuffle_i32x4(half[i], half[i + 8], 0xdd);
    rows[i + 4] = _mm512_shuffle_i32x4(half[i + 4], half[i + 12], 0x88);
    rows[i + 12] = _mm512_shuffle_i32x4(half[i + 4], half[i + 12], 0xdd);
  }
}

/// Keys as [pairs of lanes][kTile]: one key in each lane of a vector. Vectors without a key that is
/// there are left as they are.
inline void pack_keys(const TileRows& keys, std::uint32_t* to) {
  const std::int64_t pairs = (keys.lanes + 1) / 2;
  for (std::int64_t key = keys.begin / 16 * 16; key < keys.end; key += 16) {
    for (std::int64_t pair = 0; pair < pairs; pair += 16) {
      Pairs rows[16];
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) rows[i] = keys.load(key + i, pair * 2);
      transpose(rows);
      const std::int64_t count = std::min<std::int64_t>(16, pairs - pair);
      for (std::int64_t i = 0; i < count; ++i) store_pairs(rows[i], to + (pair + i) * kTile + key);
    }
  }
}

/// Values as [pairs of keys][padded]: keys 2j and 2j + 1 of one lane beside each other. \param
/// padded a multiple of 16
inline void pack_values(const TileRows& values, std::int64_t padded, std::uint32_t* to) {
  alignas(64) static constexpr std::uint16_t kLow[32] = {0,  32, 1,  33, 2,  34, 3,  35, 4,  36, 5,
                                                         37, 6,  38, 7,  39, 8,  40, 9,  41, 10, 42,
                                                         11, 43, 12, 44, 13, 45, 14, 46, 15, 47};
  const Pairs low = _mm512_load_si512(kLow);
  const Pairs high = _mm512_add_epi16(low, _mm512_set1_epi16(16));
  for (std::int64_t key = values.begin / 2 * 2; key < values.end; key += 2) {
    std::uint32_t* const row = to + key / 2 * padded;
    for (std::int64_t lane = 0; lane < padded; lane += 32) {
      const Pairs even = values.load(key, lane), odd = values.load(key + 1, lane);
      store_pairs(_mm512_permutex2var_epi16(even, low, odd), row + lane);
      if (lane + 16 < padded)
        store_pairs(_mm512_permutex2var_epi16(even, high, odd), row + lane + 16);
    }
  }
}

/// Logits of R query rows with N vectors of packed keys, times `scale`. Rows of logits lie kTile
/// apart.
template <int R, int N>
[[gnu::always_inline]] inline void logits_of(const std::uint32_t* query, std::int64_t query_stride,
                                             const std::uint32_t* keys, std::int64_t pairs,
                                             float scale, float* logits) {
  Lanes::V sums[R][N];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) sums[r][n] = Lanes::zero();
  }
  for (std::int64_t pair = 0; pair < pairs; ++pair, keys += kTile) {
    Pairs loaded[N];
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) loaded[n] = load_pairs(keys + n * Lanes::kWidth);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const Pairs lanes = _mm512_set1_epi32(static_cast<int>(query[r * query_stride + pair]));
#pragma GCC unroll 4
      for (int n = 0; n < N; ++n) sums[r][n] = dot(sums[r][n], loaded[n], lanes);
    }
  }
  const Lanes::V by = Lanes::set(scale);
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) {
      Lanes::store(Lanes::mul(sums[r][n], by), logits + r * kTile + n * Lanes::kWidth);
    }
  }
}

/// output[r] += weights[r] * values for pairs of keys [first, last), over N vectors of lanes. Of
/// masked pairs only the halves in `mask` count, whatever the others hold.
template <int R, int N, bool kMasked>
[[gnu::always_inline]] inline void add_values(const std::uint32_t* weights,
                                              const std::uint32_t* values,
                                              std::int64_t value_stride, int first, int last,
                                              std::uint32_t mask, float* output,
                                              std::int64_t output_stride) {
  Lanes::V sums[R][N];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n)
      sums[r][n] = Lanes::load(output + r * output_stride + n * Lanes::kWidth);
  }
  const Pairs kept = _mm512_set1_epi32(static_cast<int>(mask));
  const std::uint32_t* row = values + first * value_stride;
  for (int pair = first; pair < last; ++pair, row += value_stride) {
    Pairs lanes[N];
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) {
      lanes[n] = load_pairs(row + n * Lanes::kWidth);
      if constexpr (kMasked) lanes[n] = _mm512_and_si512(lanes[n], kept);
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const Pairs weight = _mm512_set1_epi32(static_cast<int>(weights[r * kTile + pair]));
#pragma GCC unroll 4
      for (int n = 0; n < N; ++n) sums[r][n] = dot(sums[r][n], lanes[n], weight);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n)
      Lanes::store(sums[r][n], output + r * output_stride + n * Lanes::kWidth);
  }
}
