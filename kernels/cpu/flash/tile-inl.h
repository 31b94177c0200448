// Products of one tile: logits of query rows with keys, and weighted sums of values. Included after
// the lanes.

/// Logits of `R` query rows with Lanes::kWidth / 2 keys, as dot products over `eights` times eight
/// lanes; unscaled. `ahead`, unless null: rows to fetch while these are worked on.
template <int R, class Element>
void logits_of(const float* query, std::int64_t query_stride, const Element* key,
               std::int64_t key_stride, std::int64_t eights, const std::byte* ahead,
               float* logits) {
  using V = Lanes::V;
  constexpr std::int64_t kStep = 8 / kLanesPerElement<Element>;
  constexpr std::int64_t kLines = Lanes::kKeys * 4 * kStep * sizeof(Element) / 64;
  const std::int64_t beside = 4 * key_stride;
  V sums[R][4];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) sums[r][v] = Lanes::zero();
  }
  for (std::int64_t eight = 0; eight < eights; ++eight) {
    V keys[4];
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) {
      const Element* at = key + v * key_stride + eight * kStep;
      keys[v] = Lanes::load_keys(at, at + beside);
    }
    if (ahead != nullptr) {
      for (std::int64_t line = 0; line < kLines; ++line) {
        Lanes::prefetch(ahead + (eight * kLines + line) * 64);
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const V lanes = Lanes::load_query(query + r * query_stride + eight * 8);
#pragma GCC unroll 4
      for (int v = 0; v < 4; ++v) sums[r][v] = Lanes::fma(keys[v], lanes, sums[r][v]);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < R; r += 2) {
    Lanes::reduce(sums[r], sums[r + 1], logits + r * kTile, logits + (r + 1) * kTile);
  }
}

/// output[r] += weight[r][k] * value[k] for keys [first, last) in ascending order, over N vectors
/// of lanes.
template <int R, int N, class Element>
void add_values(const float* weights, const Element* value, std::int64_t value_stride,
                std::int64_t first, std::int64_t last, const std::byte* ahead, float* output,
                std::int64_t output_stride) {
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
