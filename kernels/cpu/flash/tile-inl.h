// Products of one tile: logits of query rows with keys, and weighted sums of values. Included after
// the lanes.

/// Keys of one block: what logits_of takes at a time.
inline constexpr std::int64_t kBlock = Lanes::kWidth / 2;

/// A block of keys as they lie in the cache, one row after the other.
template <class Element>
struct KeyRows {
  const Element* first;
  std::int64_t stride;

  /// Lanes [8 * eight, 8 * eight + 8) of key v, and of key v + 4 where a vector has room for it.
  Lanes::V load(int v, std::int64_t eight) const {
    const Element* at = first + v * stride + eight * (8 / kLanesPerElement<Element>);
    return Lanes::load_keys(at, at + 4 * stride);
  }
};

/// A block of keys in the order in which logits_of reads them, as f32.
struct PackedKeys {
  const float* first;

  Lanes::V load(int v, std::int64_t eight) const {
    return Lanes::load(first + (eight * 4 + v) * Lanes::kWidth);
  }
};

template <class Element>
void pack_keys(const KeyRows<Element>& rows, std::int64_t eights, float* to) {
  for (std::int64_t eight = 0; eight < eights; ++eight) {
    for (int v = 0; v < 4; ++v, to += Lanes::kWidth) Lanes::store(rows.load(v, eight), to);
  }
}

/// The same with only the rows [begin, end) of the block and `lanes` lanes; zeros elsewhere.
template <class Element>
void pack_some_keys(const KeyRows<Element>& rows, std::int64_t begin, std::int64_t end,
                    std::int64_t lanes, std::int64_t eights, float* to) {
  for (std::int64_t at = 0; at < eights * 4 * Lanes::kWidth; ++at) {
    const std::int64_t vector = at / Lanes::kWidth, place = at % Lanes::kWidth;
    const std::int64_t key = vector % 4 + place / 8 * 4, lane = vector / 4 * 8 + place % 8;
    const bool there = begin <= key && key < end && lane < lanes;
    to[at] = there ? element_at(rows.first + key * rows.stride, lane) : 0;
  }
}

/// Logits of `R` query rows with one block of keys, as dot products over `eights` times eight
/// lanes; unscaled. `ahead`, unless null: rows to fetch while these are worked on.
template <int R, class Keys>
[[gnu::always_inline]] inline void logits_of(const float* query, std::int64_t query_stride,
                                             const Keys& keys, std::int64_t eights,
                                             const std::byte* ahead, std::int64_t lines,
                                             float* logits) {
  using V = Lanes::V;
  V sums[R][4];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) sums[r][v] = Lanes::zero();
  }
  for (std::int64_t eight = 0; eight < eights; ++eight) {
    V loaded[4];
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) loaded[v] = keys.load(v, eight);
    if (ahead != nullptr) {
      for (std::int64_t line = 0; line < lines; ++line, ahead += 64) Lanes::prefetch(ahead);
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const V lanes = Lanes::load_query(query + r * query_stride + eight * 8);
#pragma GCC unroll 4
      for (int v = 0; v < 4; ++v) sums[r][v] = Lanes::fma(loaded[v], lanes, sums[r][v]);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < R; r += 2) {
    Lanes::reduce(sums[r], sums[r + 1], logits + r * kTile, logits + (r + 1) * kTile);
  }
}

/// output[r] += weight[r][k] * value[k] for keys [first, last) in ascending order, over N vectors
/// of lanes.
template <std::int64_t R, int N, class Element>
[[gnu::always_inline]] inline void add_values(const float* weights, const Element* value,
                                              std::int64_t value_stride, std::int64_t first,
                                              std::int64_t last, const std::byte* ahead,
                                              float* output, std::int64_t output_stride) {
  using V = Lanes::V;
  constexpr std::int64_t kStep = Lanes::kWidth / kLanesPerElement<Element>;
  constexpr int kLines = static_cast<int>(N * kStep * sizeof(Element) / 64);
  V sums[R][N];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) {
      sums[r][n] = Lanes::load(output + r * output_stride + n * Lanes::kWidth);
    }
  }
  const Element* row = value + first * value_stride;
  for (std::int64_t k = first; k < last; ++k, row += value_stride) {
    V lanes[N];
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) lanes[n] = Lanes::load_value(row + n * kStep);
    if (ahead != nullptr) {
#pragma GCC unroll 8
      for (int line = 0; line < kLines; ++line) Lanes::prefetch(ahead + line * 64);
      ahead += value_stride * static_cast<std::int64_t>(sizeof(Element));
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const V weight = Lanes::set(weights[r * kTile + k]);
#pragma GCC unroll 8
      for (int n = 0; n < N; ++n) sums[r][n] = Lanes::fma(weight, lanes[n], sums[r][n]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) {
      Lanes::store(sums[r][n], output + r * output_stride + n * Lanes::kWidth);
    }
  }
}
