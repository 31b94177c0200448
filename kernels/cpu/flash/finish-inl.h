// Merging partial results and the last division. Included after the lanes and exp.

/// Takes the partial result of a chunk into that of all chunks before it, row by row.
inline void merge_rows(const Partial& into, const Partial& chunk, std::int64_t rows,
                       std::int64_t lanes) {
  constexpr std::int64_t kWidth = Lanes::kWidth;
  for (std::int64_t r = 0; r < rows; ++r) {
    const float before = into.maximum[r], here = chunk.maximum[r];
    if (here == -std::numeric_limits<float>::infinity()) continue;  // The row saw no key here.
    if (before == -std::numeric_limits<float>::infinity()) {        // Its first keys: as they are.
      into.maximum[r] = here;
      std::copy_n(chunk.sums + r * kSumLanes, kSumLanes, into.sums + r * kSumLanes);
      std::copy_n(chunk.output + r * lanes, lanes, into.output + r * lanes);
      continue;
    }
    const float most = here > before ? here : before;
    const Lanes::V keep = Lanes::set(exp_of_one(before - most));
    const Lanes::V take = Lanes::set(exp_of_one(here - most));
    into.maximum[r] = most;
    const auto merge = [&](float* to, const float* from, std::int64_t count) {
      for (std::int64_t i = 0; i < count; i += kWidth) {
        const Lanes::V kept = Lanes::mul(Lanes::load(to + i), keep);
        Lanes::store(Lanes::fma(Lanes::load(from + i), take, kept), to + i);
      }
    };
    merge(into.sums + r * kSumLanes, chunk.sums + r * kSumLanes, kSumLanes);
    merge(into.output + r * lanes, chunk.output + r * lanes, lanes);
  }
}

/// Turns row r of the merged result into `lanes` outputs: takes the sink in and divides by the sum
/// of the weights. A row without keys gives 0; every NaN comes out as the same one. Returns the sum
/// of the weights.
inline float finish_row(const Partial& merged, std::int64_t r, const float* sink,
                        std::int64_t lanes, float* to) {
  constexpr std::int64_t kWidth = Lanes::kWidth;
  float* const sums = merged.sums + r * kSumLanes;
  const float* const output = merged.output + r * lanes;
  for (std::int64_t apart = kSumLanes / 2; apart > 0; apart /= 2) {
    for (std::int64_t i = 0; i < apart; ++i) sums[i] += sums[i + apart];
  }
  float total = sums[0], factor = 1;
  if (sink != nullptr) {
    const float before = merged.maximum[r], most = *sink > before ? *sink : before;
    factor = exp_of_one(before - most);
    total = total * factor + exp_of_one(*sink - most);
    merged.maximum[r] = most;
  }
  // Without a key the output is zero already.
  const Lanes::V by = Lanes::set(total == 0 ? 0 : factor / total);
  for (std::int64_t i = 0; i < lanes; i += kWidth) {
    Lanes::store(Lanes::one_nan(Lanes::mul(Lanes::load(output + i), by)), to + i);
  }
  return total;
}
