// The pass over the tiles of one chunk by bf16 dot products. Included after the lanes, exp and the
// tile products.
//
// Canonical as the pass of cpu-flash: a query row meets its keys tile by tile in ascending
// position, and pairs are those of positions (2j, 2j + 1). A half of a pair that the row may not
// see is masked out of the register, never multiplied by zero.

inline constexpr std::uint64_t kEvenKeys = 0x5555555555555555u;

/// Keys of a tile that lie in [begin, end), as bits.
inline std::uint64_t bits_between(std::int64_t begin, std::int64_t end) {
  begin = begin < 0 ? 0 : begin;
  end = end > kTile ? kTile : end;
  if (begin >= end) return 0;
  return (~std::uint64_t{0} >> (kTile - end)) & (~std::uint64_t{0} << begin);
}

class DotPass {
 public:
  DotPass(const ChunkTask& task, const TileScratch& scratch)
      : task_(task),
        scratch_(scratch),
        rows_((task.rows + 1) / 2 * 2),
        query_(reinterpret_cast<const std::uint32_t*>(task.query)),
        keys_(reinterpret_cast<std::uint32_t*>(scratch.keys)),
        values_(reinterpret_cast<std::uint32_t*>(scratch.values)) {}

  void run() {
    std::int64_t first = task_.chunk_end, last = task_.chunk_begin;
    for (std::int64_t r = 0; r < rows_; ++r) {
      task_.partial.maximum[r] = kHidden;
      clear(task_.partial.sums + r * kSumLanes, kSumLanes);
      clear(task_.partial.output + r * task_.output_lanes, task_.output_lanes);
    }
    for (std::int64_t r = 0; r < task_.rows; ++r) {
      if (task_.begin[r] < first) first = task_.begin[r];
      if (task_.end[r] > last) last = task_.end[r];
    }
    if (first < task_.chunk_begin) first = task_.chunk_begin;
    if (last > task_.chunk_end) last = task_.chunk_end;
    for (std::int64_t tile = first / kTile * kTile; tile < last; tile += kTile) run_tile(tile);
  }

 private:
  using V = Lanes::V;
  static constexpr int kWidth = Lanes::kWidth, kVectors = kTile / kWidth;
  static constexpr std::int64_t kGroup = 4;  ///< Rows that go through a tile together.
  static constexpr float kHidden = -std::numeric_limits<float>::infinity();

  static void clear(float* at, std::int64_t count) {
    for (std::int64_t i = 0; i < count; i += kWidth) Lanes::store(Lanes::zero(), at + i);
  }

  static void multiply(float* at, std::int64_t count, float factor) {
    const V by = Lanes::set(factor);
    for (std::int64_t i = 0; i < count; i += kWidth) {
      Lanes::store(Lanes::mul(Lanes::load(at + i), by), at + i);
    }
  }

  void run_tile(std::int64_t tile) {
    const StoredRows& stored = task_.stored;
    std::uint64_t any = 0;
    for (std::int64_t r = 0; r < task_.rows; ++r) {
      const bool later = task_.begin[r] < stored.first_position;
      const bool sooner = task_.end[r] > stored.end_position;
      scratch_.visible[r] = bits_between((later ? stored.first_position : task_.begin[r]) - tile,
                                         (sooner ? stored.end_position : task_.end[r]) - tile);
      any |= scratch_.visible[r];
    }
    if (task_.rows < rows_) scratch_.visible[task_.rows] = scratch_.visible[task_.rows - 1];
    if (any == 0) return;
    const std::int64_t begin = std::countr_zero(any), end = 64 - std::countl_zero(any);
    const std::int64_t before = tile - stored.first_position;
    pack_keys({stored.key + before * stored.key_row_bytes, stored.key_row_bytes, begin, end,
               task_.head_size},
              keys_);
    if (task_.sink == nullptr) {
      pack_values({stored.value + before * stored.value_row_bytes, stored.value_row_bytes, begin,
                   end, task_.value_head_size},
                  task_.output_lanes, values_);
    }
    for (std::int64_t row = 0; row < rows_; row += kGroup) {
      find_logits(row);
      const std::int64_t left = task_.rows - row;
      if (task_.sink == nullptr) attend(tile, row, left < kGroup ? left : kGroup);
    }
    if (task_.sink != nullptr) task_.sink->take(tile, scratch_.logits, scratch_.visible);
  }

  // ---- logits ----

  /// Vectors of a row's logits in which it sees a key.
  struct Seen {
    int first, last;
  };
  static Seen seen(std::uint64_t visible) {
    if (visible == 0) return {0, 0};
    return {std::countr_zero(visible) / kWidth, (63 - std::countl_zero(visible)) / kWidth + 1};
  }

  void find_logits(std::int64_t row) {
    if (rows_ - row >= kGroup) return find_logits_of<kGroup>(row);
    find_logits_of<2>(row);
  }

  template <int R>
  void find_logits_of(std::int64_t row) {
    std::uint64_t any = 0;
    for (int r = 0; r < R; ++r) any |= scratch_.visible[row + r];
    const Seen parts = seen(any);
    switch (parts.last - parts.first) {
      case 0:
        return;
      case 1:
        return find_vectors<R, 1>(row, parts.first);
      case 2:
        return find_vectors<R, 2>(row, parts.first);
      case 3:
        return find_vectors<R, 3>(row, parts.first);
      default:
        return find_vectors<R, 4>(row, parts.first);
    }
  }

  template <int R, int N>
  void find_vectors(std::int64_t row, int first) {
    logits_of<R, N>(query_ + row * task_.query_stride, task_.query_stride, keys_ + first * kWidth,
                    (task_.head_size + 1) / 2, task_.scale,
                    scratch_.logits + row * kTile + first * kWidth);
  }

  // ---- softmax ----

  void attend(std::int64_t tile, std::int64_t row, std::int64_t count) {
    V most[kGroup];
    for (std::int64_t i = 0; i < kGroup; ++i) {
      most[i] = i < count ? hide_logits(tile, row + i) : most[0];
    }
    raise_maxima(most, row, count);
    for (std::int64_t i = 0; i < count; ++i) exponentiate(row + i);
    if (count == kGroup) return sum_values<kGroup>(row);
    for (std::int64_t i = 0; i < count; ++i) sum_values<1>(row + i);
  }

  /// Caps, biases and hides the logits of one row; the largest of them, lane by lane.
  V hide_logits(std::int64_t tile, std::int64_t r) {
    float* const logits = scratch_.logits + r * kTile;
    if (task_.softcap != 0 || task_.bias != nullptr) adjust(tile, r, logits);
    const std::uint64_t visible = scratch_.visible[r];
    const V hidden = Lanes::set(kHidden);
    V most = hidden;
    if (visible == ~std::uint64_t{0}) {
#pragma GCC unroll 4
      for (int i = 0; i < kVectors; ++i) most = Lanes::max(most, Lanes::load(logits + i * kWidth));
      return most;
    }
    const Seen parts = seen(visible);
    for (int i = parts.first; i < parts.last; ++i) {
      const auto bits = static_cast<std::uint32_t>(visible >> (i * kWidth));
      const V lanes = Lanes::select(bits, Lanes::load(logits + i * kWidth), hidden);
      Lanes::store(lanes, logits + i * kWidth);
      most = Lanes::max(most, lanes);
    }
    return most;
  }

  /// Softcap and bias of the keys that the row sees.
  void adjust(std::int64_t tile, std::int64_t r, float* logits) {
    std::uint64_t& visible = scratch_.visible[r];
    float bias[kTile] = {};
    if (task_.bias != nullptr && visible != 0) {
      const std::int64_t low = std::countr_zero(visible), high = 64 - std::countl_zero(visible);
      task_.bias->fill(r, tile + low, high - low, bias + low);
    }
    for (std::uint64_t left = visible; left != 0; left &= left - 1) {
      const int i = std::countr_zero(left);
      if (task_.softcap != 0) logits[i] = task_.softcap * std::tanh(logits[i] / task_.softcap);
      if (bias[i] == kHidden) {
        visible &= ~(std::uint64_t{1} << i);
      } else if (task_.bias != nullptr) {
        logits[i] += bias[i];
      }
    }
  }

  /// Takes the largest logits of a group into the running maxima, and rescales what was summed
  /// under a smaller one.
  void raise_maxima(const V* most, std::int64_t row, std::int64_t count) {
    alignas(64) float risen[kWidth] = {};  // Old minus new maximum, for one exp of all rows.
    float largest[kGroup];
    Lanes::largest(most, largest);
    bool rises = false;
    for (std::int64_t i = 0; i < count; ++i) {
      float& maximum = task_.partial.maximum[row + i];
      if (!(largest[i] > maximum)) continue;
      // Before the first key there are only zeros to rescale.
      if (maximum != kHidden) {
        risen[i] = maximum - largest[i];
        rises = true;
      }
      maximum = largest[i];
    }
    if (!rises) return;
    alignas(64) float factors[kWidth];
    Lanes::store(exp_of(Lanes::load(risen)), factors);
    for (std::int64_t i = 0; i < count; ++i) {
      if (risen[i] != 0) rescale(row + i, factors[i]);
    }
  }

  void rescale(std::int64_t r, float factor) {
    multiply(task_.partial.sums + r * kSumLanes, kSumLanes, factor);
    multiply(task_.partial.output + r * task_.output_lanes, task_.output_lanes, factor);
  }

  /// Turns the logits of one row into weights in bf16, exp(logit - maximum), in the same place. Of
  /// what is hidden they are 0. The sums are those of the rounded weights.
  void exponentiate(std::int64_t r) {
    const std::uint64_t visible = scratch_.visible[r];
    if (visible == 0) return;
    float* const logits = scratch_.logits + r * kTile;
    auto* const weights = reinterpret_cast<std::uint32_t*>(logits);
    float* const sums = task_.partial.sums + r * kSumLanes;
    const V maximum = Lanes::set(task_.partial.maximum[r]);
    V lanes[kVectors];
    if (visible == ~std::uint64_t{0}) {
#pragma GCC unroll 4
      for (int i = 0; i < kVectors; ++i) {
        lanes[i] = exp_of(Lanes::sub(Lanes::load(logits + i * kWidth), maximum));
      }
    } else {
      const Seen parts = seen(visible);
#pragma GCC unroll 4
      for (int i = 0; i < kVectors; ++i) {
        lanes[i] = parts.first <= i && i < parts.last
                       ? exp_of(Lanes::sub(Lanes::load(logits + i * kWidth), maximum))
                       : Lanes::zero();
      }
    }
    const Pairs ones = _mm512_set1_epi32(0x3f803f80);
    const Pairs low = narrow(lanes[0], lanes[1]), high = narrow(lanes[2], lanes[3]);
    store_pairs(low, weights);
    store_pairs(high, weights + kWidth);
    Lanes::store(dot(dot(Lanes::load(sums), low, ones), high, ones), sums);
  }

  // ---- values ----

  /// Pairs of keys in ascending order: runs that all R rows see whole, and single ones of which
  /// some row sees a half or nothing.
  template <int R>
  void sum_values(std::int64_t row) {
    const std::uint64_t* const visible = scratch_.visible + row;
    std::uint64_t any = 0, all = ~std::uint64_t{0};
    for (int r = 0; r < R; ++r) {
      any |= visible[r];
      all &= visible[r];
    }
    const std::uint64_t whole = all & all >> 1 & kEvenKeys;
    std::uint64_t some = (any | any >> 1) & kEvenKeys;
    while (some != 0) {
      const int first = std::countr_zero(some);
      int last = first + 2;
      if ((whole >> first & 1) != 0) {
        const std::uint64_t beyond = (~whole & kEvenKeys) >> first;
        last = beyond == 0 ? 64 : first + std::countr_zero(beyond);
        sum_pairs<R, false>(row, first / 2, last / 2, 0);
      } else if ((any >> first & 3) == (all >> first & 3)) {
        sum_pairs<R, true>(row, first / 2, last / 2, mask_of(all >> first));
      } else if constexpr (R > 1) {
        for (int r = 0; r < R; ++r) {
          const std::uint64_t bits = visible[r] >> first & 3;
          if (bits != 0) sum_pairs<1, true>(row + r, first / 2, last / 2, mask_of(bits));
        }
      }
      some &= last == 64 ? 0 : ~std::uint64_t{0} << last;
    }
  }

  static std::uint32_t mask_of(std::uint64_t bits) {
    return ((bits & 1) != 0 ? 0xffffu : 0) | ((bits & 2) != 0 ? 0xffff0000u : 0);
  }

  template <int R, bool kMasked>
  void sum_pairs(std::int64_t row, int first, int last, std::uint32_t mask) {
    std::int64_t lane = 0;
    while (task_.output_lanes - lane >= 4 * kWidth)
      sum_lanes<R, 4, kMasked>(row, first, last, mask, lane);
    while (task_.output_lanes - lane >= 2 * kWidth)
      sum_lanes<R, 2, kMasked>(row, first, last, mask, lane);
    if (lane < task_.output_lanes) sum_lanes<R, 1, kMasked>(row, first, last, mask, lane);
  }

  template <int R, int N, bool kMasked>
  void sum_lanes(std::int64_t row, int first, int last, std::uint32_t mask, std::int64_t& lane) {
    const auto* const weights =
        reinterpret_cast<const std::uint32_t*>(scratch_.logits + row * kTile);
    add_values<R, N, kMasked>(weights, values_ + lane, task_.output_lanes, first, last, mask,
                              task_.partial.output + row * task_.output_lanes + lane,
                              task_.output_lanes);
    lane += N * kWidth;
  }

  const ChunkTask& task_;
  const TileScratch& scratch_;
  std::int64_t rows_;  // Rows rounded up to 2.
  const std::uint32_t* query_;
  std::uint32_t* keys_;
  std::uint32_t* values_;
};
