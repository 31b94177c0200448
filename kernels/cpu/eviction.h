// Eviction: how many rows stay resident after T tokens.
//
// Symbols: T = tokens of one sequence so far, C = capacity, W = window_size, G = rows that leave at
// once. L(T) = T while T <= C, else T - G*ceil((T-C)/G). Row i holds position T - L(T) + i.
// Block eviction has G = C - W + 1, so that rows move once in G single-token steps; min_overflow
// has G = 1, which makes L(T) = min(T, C).
#pragma once

#include <cstdint>
#include <limits>

namespace kvcheck::kernels {

class Eviction {
 public:
  /// Keeps every token.
  static Eviction never() { return {std::numeric_limits<std::int64_t>::max(), 0, 1, true}; }
  /// \pre 1 <= window <= capacity
  static Eviction blocks(std::int64_t capacity, std::int64_t window) {
    return {capacity, window, capacity - window + 1, false};
  }
  /// \pre 1 <= window <= capacity
  static Eviction min_overflow(std::int64_t capacity, std::int64_t window) {
    return {capacity, window, 1, true};
  }

  /// L(T). \pre length >= 0
  std::int64_t resident(std::int64_t length) const {
    if (length <= capacity_) return length;
    const std::int64_t over = length - capacity_;
    return length - period_ * (over / period_ + (over % period_ != 0 ? 1 : 0));
  }

  /// Rows that the first query of a step after `past` tokens still reads: min(P, W-1).
  std::int64_t required(std::int64_t past) const {
    if (window_ == 0) return past;
    return past < window_ ? past : window_ - 1;
  }

  /// Dropping the newest `tokens` of `length` leaves every row where the shorter length has it. An
  /// empty cache needs no row, but the contract of blocks goes by the formula there too.
  /// \pre 0 <= tokens <= length
  bool rollback_is_exact(std::int64_t length, std::int64_t tokens) const {
    if (empties_ && tokens == length) return true;
    return resident(length - tokens) == resident(length) - tokens;
  }

  /// Largest k for which dropping 1..k tokens is exact: T while T <= C, else L(T) - (C - G + 1).
  std::int64_t max_exact_rollback(std::int64_t length) const {
    return length <= capacity_ ? length : resident(length) - (capacity_ - period_ + 1);
  }

 private:
  Eviction(std::int64_t capacity, std::int64_t window, std::int64_t period, bool empties)
      : capacity_(capacity), window_(window), period_(period), empties_(empties) {}

  std::int64_t capacity_;
  std::int64_t window_;  // 0 = never evicts.
  std::int64_t period_;  // G.
  bool empties_;         // A drop of everything is exact.
};

}  // namespace kvcheck::kernels
