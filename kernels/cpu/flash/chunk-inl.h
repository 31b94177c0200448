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
        widens_keys_(task.head_size % 8 != 0 || (kNarrow && task.rows > kWidenFrom)),
        widens_values_(task.value_head_size % 16 != 0 || (kNarrow && task.rows > kWidenFrom)) {}

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
  /// Rows from which it is cheaper to widen a tile once than in every product.
  static constexpr std::int64_t kWidenFrom = 8;
  static constexpr std::int64_t kBlock = Lanes::kWidth / 2;  ///< Keys of one logits_of.
  /// How far rows are fetched ahead of their use: 8 KiB of f32 rows of 128 lanes. Nearer the memory
  /// is too late; farther the nearest cache forgets.
  static constexpr std::int64_t kRowsAhead = 16;
  static constexpr int kRows = Lanes::kWidth == 16 ? 4 : 2;

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
    find_logits(tile, any);
    if (task_.sink != nullptr) return task_.sink->take(tile, scratch_.logits, scratch_.visible);
    for (std::int64_t r = 0; r < task_.rows; ++r) {
      if (scratch_.visible[r] != 0) weigh(tile, r);
    }
    if (widens_values_) {
      const std::int64_t low = std::countr_zero(any), high = 64 - std::countl_zero(any);
      widen_rows<Element>(value_ + low * task_.stored.value_row_bytes, task_.stored.value_row_bytes,
                          high - low, task_.value_head_size, task_.output_lanes,
                          scratch_.values + low * task_.output_lanes);
      sum_values(scratch_.values, task_.output_lanes);
    } else {
      sum_values(reinterpret_cast<const Element*>(value_),
                 task_.stored.value_row_bytes / static_cast<std::int64_t>(sizeof(Element)));
    }
  }

  // ---- logits ----

  void find_logits(std::int64_t tile, std::uint64_t any) {
    const std::int64_t low = std::max<std::int64_t>(0, task_.stored.first_position - tile);
    const std::int64_t high = std::min(kTile, task_.stored.end_position - tile);
    for (std::int64_t block = 0; block < kTile; block += kBlock) {
      const std::uint64_t bits = bits_between(block, block + kBlock);
      if ((any & bits) == 0) continue;
      const bool whole = low <= block && block + kBlock <= high;
      if (widens_keys_ || !whole) {
        // Rows that are not there become zeros, which no one sees.
        float* const to = scratch_.keys + block * padded_;
        const std::int64_t from = std::max(low, block), until = std::min(high, block + kBlock);
        if (!whole) std::fill_n(to, kBlock * padded_, 0.0f);
        widen_rows<Element>(key_ + from * task_.stored.key_row_bytes, task_.stored.key_row_bytes,
                            until - from, task_.head_size, padded_, scratch_.keys + from * padded_);
        logits_of_block(scratch_.keys, padded_, block, bits);
      } else {
        logits_of_block(reinterpret_cast<const Element*>(key_),
                        task_.stored.key_row_bytes / static_cast<std::int64_t>(sizeof(Element)),
                        block, bits);
      }
    }
  }

  template <class Stored>
  void logits_of_block(const Stored* keys, std::int64_t stride, std::int64_t block,
                       std::uint64_t bits) {
    const Stored* const key = keys + block * stride;
    const auto* ahead = reinterpret_cast<const std::byte*>(key + kRowsAhead * stride);
    std::int64_t r = 0;
    for (; r + kRows <= rows_; r += kRows) {
      if ((visible_to(r, kRows) & bits) == 0) continue;
      logits_of<kRows>(task_.query + r * task_.query_stride, task_.query_stride, key, stride,
                       padded_ / 8, ahead, scratch_.logits + r * kTile + block);
      ahead = nullptr;
    }
    for (; r < rows_; r += 2) {
      if ((visible_to(r, 2) & bits) == 0) continue;
      logits_of<2>(task_.query + r * task_.query_stride, task_.query_stride, key, stride,
                   padded_ / 8, ahead, scratch_.logits + r * kTile + block);
      ahead = nullptr;
    }
  }

  std::uint64_t visible_to(std::int64_t row, int count) const {
    std::uint64_t bits = 0;
    for (int i = 0; i < count; ++i) bits |= scratch_.visible[row + i];
    return bits;
  }

  // ---- softmax ----

  /// Turns the logits of row r into weights and takes them into the sums.
  void weigh(std::int64_t tile, std::int64_t r) {
    using V = Lanes::V;
    constexpr int kWidth = Lanes::kWidth, kVectors = kTile / kWidth;
    float* const logits = scratch_.logits + r * kTile;
    const V scale = Lanes::set(task_.scale);
    const V hidden = Lanes::set(-std::numeric_limits<float>::infinity());
    V lanes[kVectors];
#pragma GCC unroll 8
    for (int i = 0; i < kVectors; ++i)
      lanes[i] = Lanes::mul(Lanes::load(logits + i * kWidth), scale);
    if (task_.softcap != 0 || task_.bias != nullptr) {
      for (int i = 0; i < kVectors; ++i) Lanes::store(lanes[i], logits + i * kWidth);
      adjust(tile, r, logits);
      for (int i = 0; i < kVectors; ++i) lanes[i] = Lanes::load(logits + i * kWidth);
    }
    const std::uint64_t visible = scratch_.visible[r];
    if (visible == 0) return;
    if (visible != ~std::uint64_t{0}) {
#pragma GCC unroll 8
      for (int i = 0; i < kVectors; ++i) {
        lanes[i] =
            Lanes::select(static_cast<std::uint32_t>(visible >> (i * kWidth)), lanes[i], hidden);
      }
    }
    V most = lanes[0];
#pragma GCC unroll 8
    for (int i = 1; i < kVectors; ++i) most = Lanes::max(most, lanes[i]);
    if (const float largest = Lanes::largest(most); largest > task_.partial.maximum[r]) {
      rescale(r, exp_of_one(task_.partial.maximum[r] - largest));
      task_.partial.maximum[r] = largest;
    }
    const V maximum = Lanes::set(task_.partial.maximum[r]);
#pragma GCC unroll 8
    for (int i = 0; i < kVectors; ++i) {
      lanes[i] = exp_of(Lanes::sub(lanes[i], maximum));
      Lanes::store(lanes[i], logits + i * kWidth);
    }
    float* const sums = task_.partial.sums + r * kSumLanes;
#pragma GCC unroll 2
    for (int lane = 0; lane < kSumLanes; lane += kWidth) {
      V sum = Lanes::load(sums + lane);
#pragma GCC unroll 4
      for (int i = lane / kWidth; i < kVectors; i += kSumLanes / kWidth)
        sum = Lanes::add(sum, lanes[i]);
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
  void sum_values(const Stored* values, std::int64_t stride) {
    constexpr int kGroup = 4;
    std::int64_t r = 0;
    for (; r + kGroup <= task_.rows; r += kGroup) sum_group<kGroup>(values, stride, r);
    for (; r < task_.rows; ++r) sum_group<1>(values, stride, r);
  }

  /// Runs of keys that the same rows of a group see, in ascending order.
  template <int R, class Stored>
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

  template <int R, class Stored>
  void sum_run(const Stored* values, std::int64_t stride, std::int64_t row, std::int64_t first,
               std::int64_t last) {
    constexpr int kVectors = Lanes::kWidth == 16 ? 4 : 2;
    constexpr std::int64_t kWidth = Lanes::kWidth;
    const float* const weights = scratch_.logits + row * kTile;
    float* const output = task_.partial.output + row * task_.output_lanes;
    const std::byte* ahead = nullptr;
    if (row == 0)
      ahead = reinterpret_cast<const std::byte*>(values + (kRowsAhead + first) * stride);
    std::int64_t lane = 0;
    for (; lane + kVectors * kWidth <= task_.output_lanes; lane += kVectors * kWidth) {
      add_values<R, kVectors>(weights, values + lane / kLanesPerElement<Stored>, stride, first,
                              last, ahead, output + lane, task_.output_lanes);
      if (ahead != nullptr)
        ahead += kVectors * kWidth / kLanesPerElement<Stored> *
                 static_cast<std::int64_t>(sizeof(Stored));
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
  bool widens_keys_, widens_values_;
  const std::byte* key_ = nullptr;  // Row of the tile's first position, which need not exist.
  const std::byte* value_ = nullptr;
};

template <class Element>
void chunk_pass(const ChunkTask& task, const TileScratch& scratch) {
  ChunkPass<Element>(task, scratch).run();
}
