// The pass over the tiles of one chunk. Included after the lanes, exp and the tile products.
//
// Canonical: whatever the buffer, the step or the block of rows, a query row meets its keys tile by
// tile in ascending position, each tile with the same sums. Keys that a row may not see are left
// out, never multiplied by zero.

/// Converts stored rows of one tile to f32 rows of `padded` lanes, zero beyond `lanes`.
template <class Element>
void widen_rows(const std::byte* row, std::int64_t row_bytes, std::int64_t count,
                std::int64_t lanes, std::int64_t padded, float* to) {
  constexpr std::int64_t kWidth = Lanes::kWidth;
  for (std::int64_t r = 0; r < count; ++r, row += row_bytes, to += padded) {
    const auto* from = reinterpret_cast<const Element*>(row);
    std::int64_t lane = 0;
    for (; lane + kWidth <= lanes; lane += kWidth) {
      Lanes::store(Lanes::load_value(from + lane / kLanesPerElement<Element>), to + lane);
    }
    for (; lane < lanes; ++lane) to[lane] = element_at(from, lane);
    for (; lane < padded; ++lane) to[lane] = 0;
  }
}

/// Keys of a tile that lie in [begin, end), as bits.
inline std::uint64_t bits_between(std::int64_t begin, std::int64_t end) {
  begin = std::clamp<std::int64_t>(begin, 0, kTile);
  end = std::clamp<std::int64_t>(end, 0, kTile);
  if (begin >= end) return 0;
  const std::uint64_t below = end == kTile ? ~std::uint64_t{0} : (std::uint64_t{1} << end) - 1;
  return below & ~((std::uint64_t{1} << begin) - 1);
}

template <class Element>
class ChunkPass {
 public:
  ChunkPass(const ChunkTask& task, const TileScratch& scratch)
      : task_(task),
        scratch_(scratch),
        padded_((task.head_size + 7) / 8 * 8),
        rows_((task.rows + 1) / 2 * 2),
        packs_keys_(task.head_size % 8 != 0 || task.rows > kPackFrom),
        widens_values_(task.value_head_size % 16 != 0 || (kNarrow && task.rows > kPackFrom)) {}

  void run() {
    for (std::int64_t r = 0; r < rows_; ++r) {
      task_.partial.maximum[r] = -std::numeric_limits<float>::infinity();
      std::fill_n(task_.partial.sums + r * kSumLanes, kSumLanes, 0.0f);
      std::fill_n(task_.partial.output + r * task_.output_lanes, task_.output_lanes, 0.0f);
    }
    std::int64_t first = std::numeric_limits<std::int64_t>::max(), last = 0;
    for (std::int64_t r = 0; r < task_.rows; ++r) {
      first = std::min(first, std::max(task_.begin[r], task_.chunk_begin));
      last = std::max(last, std::min(task_.end[r], task_.chunk_end));
    }
    for (std::int64_t tile = first / kTile * kTile; tile < last; tile += kTile) run_tile(tile);
  }

 private:
  static constexpr bool kNarrow = !std::is_same_v<Element, float>;
  /// Rows above which it is cheaper to pack the keys of a tile once than to pick them out for every
  /// product, and to widen the values.
  static constexpr std::int64_t kPackFrom = 8;
  /// How far rows are fetched ahead of their use: 8 KiB of f32 rows of 128 lanes. Nearer the memory
  /// is too late; farther the nearest cache forgets.
  static constexpr std::int64_t kRowsAhead = 16;
  static constexpr std::int64_t kNearRows = 32;  ///< A multiple of every vector.
  static constexpr std::int64_t kGroup = 4;      ///< Rows whose values are summed together.
  static constexpr int kRows = Lanes::kWidth == 16 ? 4 : 2;  ///< Rows of one logits_of.
  static constexpr int kWidth = Lanes::kWidth, kVectors = kTile / kWidth;

  void run_tile(std::int64_t tile) {
    std::uint64_t any = 0;
    for (std::int64_t r = 0; r < task_.rows; ++r) {
      scratch_.visible[r] =
          bits_between(std::max(task_.begin[r], task_.stored.first_position) - tile,
                       std::min(task_.end[r], task_.stored.end_position) - tile);
      any |= scratch_.visible[r];
    }
    if (task_.rows < rows_) scratch_.visible[task_.rows] = scratch_.visible[task_.rows - 1];
    if (any == 0) return;
    key_ = task_.stored.key + (tile - task_.stored.first_position) * task_.stored.key_row_bytes;
    value_ =
        task_.stored.value + (tile - task_.stored.first_position) * task_.stored.value_row_bytes;
    const std::int64_t low = std::countr_zero(any), high = 64 - std::countl_zero(any);
    if (widens_values_ && task_.sink == nullptr) {
      widen_rows<Element>(value_ + low * task_.stored.value_row_bytes, task_.stored.value_row_bytes,
                          high - low, task_.value_head_size, task_.output_lanes,
                          scratch_.values + low * task_.output_lanes);
    }
    if (packs_keys_) pack_tile(tile, any);
    // Some rows at a time go through the tile, so that their logits and sums stay near.
    for (std::int64_t row = 0; row < rows_; row += kNearRows) {
      find_logits(tile, any, row, std::min(row + kNearRows, rows_));
      if (task_.sink != nullptr) continue;
      const std::int64_t end = std::min(row + kNearRows, task_.rows);
      for (std::int64_t r = row; r < end; r += kWidth) {
        weigh(tile, r, std::min<std::int64_t>(kWidth, end - r));
      }
      for (std::int64_t r = row; r < end; r += kGroup) sum(r, std::min(kGroup, end - r));
    }
    if (task_.sink != nullptr) task_.sink->take(tile, scratch_.logits, scratch_.visible);
  }

  void sum(std::int64_t row, std::int64_t count) {
    if (widens_values_) {
      sum_values(scratch_.values, task_.output_lanes, row, count);
    } else {
      sum_values(reinterpret_cast<const Element*>(value_),
                 task_.stored.value_row_bytes / static_cast<std::int64_t>(sizeof(Element)), row,
                 count);
    }
  }

  // ---- logits ----

  KeyRows<Element> rows_of(std::int64_t block) const {
    const std::int64_t bytes = task_.stored.key_row_bytes;
    return {reinterpret_cast<const Element*>(key_ + block * bytes),
            bytes / static_cast<std::int64_t>(sizeof(Element))};
  }

  PackedKeys packed(std::int64_t block) const { return {scratch_.keys + block * padded_}; }

  /// Packs one block; rows of it that are not there become zeros, which no one sees.
  void pack(std::int64_t tile, std::int64_t block) {
    const std::int64_t low = task_.stored.first_position - tile - block;
    const std::int64_t high = task_.stored.end_position - tile - block;
    float* const to = scratch_.keys + block * padded_;
    if (low <= 0 && kBlock <= high && task_.head_size % 8 == 0) {
      const std::byte* const ahead = key_ + (block + kRowsAhead) * task_.stored.key_row_bytes;
      for (std::int64_t at = 0; at < kBlock * task_.stored.key_row_bytes; at += 64) {
        Lanes::prefetch(ahead + at);
      }
      pack_keys(rows_of(block), padded_ / 8, to);
    } else {
      pack_some_keys(rows_of(block), low, high, task_.head_size, padded_ / 8, to);
    }
  }

  void pack_tile(std::int64_t tile, std::uint64_t any) {
    for (std::int64_t block = 0; block < kTile; block += kBlock) {
      if ((any & bits_between(block, block + kBlock)) != 0) pack(tile, block);
    }
  }

  /// Logits of rows [row, end), block by block of the tile.
  void find_logits(std::int64_t tile, std::uint64_t any, std::int64_t row, std::int64_t end) {
    for (std::int64_t block = 0; block < kTile; block += kBlock) {
      if ((any & bits_between(block, block + kBlock)) == 0) continue;
      const bool whole = task_.stored.first_position <= tile + block &&
                         tile + block + kBlock <= task_.stored.end_position;
      if (packs_keys_) {
        logits_of_block(packed(block), nullptr, block, row, end);
      } else if (whole) {
        const auto* const ahead = key_ + (block + kRowsAhead) * task_.stored.key_row_bytes;
        logits_of_block(rows_of(block), ahead, block, row, end);
      } else {
        pack(tile, block);
        logits_of_block(packed(block), nullptr, block, row, end);
      }
    }
  }

  template <class Keys>
  [[gnu::always_inline]] void logits_of_block(const Keys& keys, const std::byte* ahead,
                                              std::int64_t block, std::int64_t r,
                                              std::int64_t end) {
    constexpr std::int64_t kLines = kBlock * 8 * sizeof(Element) / kLanesPerElement<Element> / 64;
    const std::uint64_t bits = bits_between(block, block + kBlock);
    for (; r + kRows <= end; r += kRows) {
      if ((visible_to(r, kRows) & bits) == 0) continue;
      logits_of<kRows>(task_.query + r * task_.query_stride, task_.query_stride, keys, padded_ / 8,
                       ahead, kLines, scratch_.logits + r * kTile + block);
      ahead = nullptr;
    }
    if constexpr (kRows > 2) {
      for (; r < end; r += 2) {
        if ((visible_to(r, 2) & bits) == 0) continue;
        logits_of<2>(task_.query + r * task_.query_stride, task_.query_stride, keys, padded_ / 8,
                     ahead, kLines, scratch_.logits + r * kTile + block);
        ahead = nullptr;
      }
    }
  }

  std::uint64_t visible_to(std::int64_t row, int count) const {
    std::uint64_t bits = 0;
    for (int i = 0; i < count; ++i) bits |= scratch_.visible[row + i];
    return bits;
  }

  // ---- softmax ----

  /// Turns the logits of rows [row, row + count), at most a vector of them, into weights and takes
  /// them into the sums.
  void weigh(std::int64_t tile, std::int64_t row, std::int64_t count) {
    alignas(64) float largest[kWidth];
    for (std::int64_t i = 0; i < count; i += 4) {
      Lanes::V most[4];
#pragma GCC unroll 4
      for (std::int64_t j = 0; j < 4; ++j) {
        most[j] = j == 0 || i + j < count ? hide_logits(tile, row + i + j) : most[0];
      }
      Lanes::largest(most, largest + i);
    }
    raise_maxima(largest, row, count);
    for (std::int64_t i = 0; i < count; ++i) exponentiate(row + i);
  }

  /// Vectors of a row's logits of which it sees a key.
  struct Seen {
    int first, last;
  };
  static Seen seen(std::uint64_t visible) {
    if (visible == 0) return {0, 0};
    return {std::countr_zero(visible) / kWidth, (63 - std::countl_zero(visible)) / kWidth + 1};
  }

  /// Caps, biases and hides the logits of one row; the largest of them, lane by lane.
  Lanes::V hide_logits(std::int64_t tile, std::int64_t r) {
    using V = Lanes::V;
    float* const logits = scratch_.logits + r * kTile;
    if (task_.softcap != 0 || task_.bias != nullptr) adjust(tile, r, logits);
    const std::uint64_t visible = scratch_.visible[r];
    V most = Lanes::set(-std::numeric_limits<float>::infinity());
    if (visible == ~std::uint64_t{0}) {
#pragma GCC unroll 8
      for (int i = 0; i < kVectors; ++i) most = Lanes::max(most, Lanes::load(logits + i * kWidth));
      return most;
    }
    const V hidden = most;
    const Seen parts = seen(visible);
    for (int i = parts.first; i < parts.last; ++i) {
      const auto bits = static_cast<std::uint32_t>(visible >> (i * kWidth));
      const V lanes = Lanes::select(bits, Lanes::load(logits + i * kWidth), hidden);
      Lanes::store(lanes, logits + i * kWidth);
      most = Lanes::max(most, lanes);
    }
    return most;
  }

  /// Takes the largest logits of some rows into the running maxima, and rescales what was summed
  /// under a smaller one.
  void raise_maxima(const float* largest, std::int64_t row, std::int64_t count) {
    float* const maxima = task_.partial.maximum + row;
    const Lanes::V before = Lanes::load(maxima), now = Lanes::load(largest);
    const std::uint32_t rows = (std::uint32_t{1} << count) - 1;
    const std::uint32_t risen = Lanes::above(now, before) & rows;
    if (risen == 0) return;
    Lanes::store(Lanes::select(risen, now, before), maxima);
    // Before the first key there are only zeros to rescale.
    std::uint32_t left =
        risen & Lanes::above(before, Lanes::set(-std::numeric_limits<float>::infinity()));
    if (left == 0) return;
    alignas(64) float factors[kWidth];
    Lanes::store(exp_of(Lanes::sub(before, now)), factors);
    for (; left != 0; left &= left - 1) {
      const int i = std::countr_zero(left);
      rescale(row + i, factors[i]);
    }
  }

  /// exp(logit - maximum) of one row, and their sums.
  void exponentiate(std::int64_t r) {
    using V = Lanes::V;
    float* const logits = scratch_.logits + r * kTile;
    float* const sums = task_.partial.sums + r * kSumLanes;
    const V maximum = Lanes::set(task_.partial.maximum[r]);
    const std::uint64_t visible = scratch_.visible[r];
    if (visible != ~std::uint64_t{0}) {
      const Seen parts = seen(visible);
      for (int i = parts.first; i < parts.last; ++i) {
        const V weight = exp_of(Lanes::sub(Lanes::load(logits + i * kWidth), maximum));
        Lanes::store(weight, logits + i * kWidth);
        float* const sum = sums + i * kWidth % kSumLanes;
        Lanes::store(Lanes::add(Lanes::load(sum), weight), sum);
      }
      return;
    }
    V lanes[kVectors];
#pragma GCC unroll 8
    for (int i = 0; i < kVectors; ++i) {
      lanes[i] = exp_of(Lanes::sub(Lanes::load(logits + i * kWidth), maximum));
      Lanes::store(lanes[i], logits + i * kWidth);
    }
#pragma GCC unroll 2
    for (int lane = 0; lane < kSumLanes; lane += kWidth) {
      V sum = Lanes::load(sums + lane);
#pragma GCC unroll 4
      for (int i = lane / kWidth; i < kVectors; i += kSumLanes / kWidth) {
        sum = Lanes::add(sum, lanes[i]);
      }
      Lanes::store(sum, sums + lane);
    }
  }

  void rescale(std::int64_t r, float factor) {
    const Lanes::V by = Lanes::set(factor);
    const auto multiply = [&](float* at, std::int64_t count) {
      for (std::int64_t i = 0; i < count; i += Lanes::kWidth) {
        Lanes::store(Lanes::mul(Lanes::load(at + i), by), at + i);
      }
    };
    multiply(task_.partial.sums + r * kSumLanes, kSumLanes);
    multiply(task_.partial.output + r * task_.output_lanes, task_.output_lanes);
  }

  /// Softcap and bias of the keys that the row sees.
  void adjust(std::int64_t tile, std::int64_t r, float* logits) {
    std::uint64_t& visible = scratch_.visible[r];
    float bias[kTile] = {};
    if (task_.bias != nullptr) {
      const std::int64_t low = std::countr_zero(visible), high = 64 - std::countl_zero(visible);
      task_.bias->fill(r, tile + low, high - low, bias + low);
    }
    for (std::uint64_t left = visible; left != 0; left &= left - 1) {
      const int i = std::countr_zero(left);
      if (task_.softcap != 0) logits[i] = task_.softcap * std::tanh(logits[i] / task_.softcap);
      if (bias[i] == -std::numeric_limits<float>::infinity()) {
        visible &= ~(std::uint64_t{1} << i);
      } else if (task_.bias != nullptr) {
        logits[i] += bias[i];
      }
    }
  }

  // ---- values ----

  template <class Stored>
  void sum_values(const Stored* values, std::int64_t stride, std::int64_t row, std::int64_t count) {
    if (count == kGroup) return sum_group<kGroup>(values, stride, row);
    for (std::int64_t r = row; r < row + count; ++r) sum_group<1>(values, stride, r);
  }

  /// Runs of keys that the same rows of a group see, in ascending order.
  template <std::int64_t R, class Stored>
  void sum_group(const Stored* values, std::int64_t stride, std::int64_t row) {
    const std::uint64_t* const visible = scratch_.visible + row;
    std::uint64_t any = 0, all = ~std::uint64_t{0};
    for (int r = 0; r < R; ++r) {
      any |= visible[r];
      all &= visible[r];
    }
    while (any != 0) {
      const int first = std::countr_zero(any);
      std::uint64_t same = ~std::uint64_t{0};  // Keys that the same rows see as see the first.
      for (int r = 0; r < R; ++r) {
        same &= (visible[r] >> first & 1) != 0 ? visible[r] : ~visible[r];
      }
      const std::uint64_t beyond = ~same >> first;
      const int last = beyond == 0 ? 64 : first + std::countr_zero(beyond);
      if ((all >> first & 1) != 0) {
        sum_run<R>(values, stride, row, first, last);
      } else if constexpr (R > 1) {
        for (int r = 0; r < R; ++r) {
          if ((visible[r] >> first & 1) != 0) sum_run<1>(values, stride, row + r, first, last);
        }
      }
      any &= last == 64 ? 0 : ~std::uint64_t{0} << last;
    }
  }

  template <std::int64_t R, class Stored>
  void sum_run(const Stored* values, std::int64_t stride, std::int64_t row, std::int64_t first,
               std::int64_t last) {
    constexpr int kAtOnce = Lanes::kWidth == 16 ? 4 : 2;
    const float* const weights = scratch_.logits + row * kTile;
    float* const output = task_.partial.output + row * task_.output_lanes;
    const std::byte* ahead = nullptr;
    if (row == 0)
      ahead = reinterpret_cast<const std::byte*>(values + (kRowsAhead + first) * stride);
    std::int64_t lane = 0;
    for (; lane + kAtOnce * kWidth <= task_.output_lanes; lane += kAtOnce * kWidth) {
      add_values<R, kAtOnce>(weights, values + lane / kLanesPerElement<Stored>, stride, first, last,
                             ahead, output + lane, task_.output_lanes);
      if (ahead != nullptr)
        ahead +=
            kAtOnce * kWidth / kLanesPerElement<Stored> * static_cast<std::int64_t>(sizeof(Stored));
    }
    for (; lane < task_.output_lanes; lane += kWidth) {
      add_values<R, 1>(weights, values + lane / kLanesPerElement<Stored>, stride, first, last,
                       nullptr, output + lane, task_.output_lanes);
    }
  }

  const ChunkTask& task_;
  const TileScratch& scratch_;
  std::int64_t padded_;  // head_size rounded up to 8.
  std::int64_t rows_;    // Rows rounded up to 2.
  bool packs_keys_, widens_values_;
  const std::byte* key_ = nullptr;  // Row of the tile's first position, which need not exist.
  const std::byte* value_ = nullptr;
};

template <class Element>
void chunk_pass(const ChunkTask& task, const TileScratch& scratch) {
  ChunkPass<Element>(task, scratch).run();
}
