// Eviction: how many rows stay resident after T tokens.
//
// Symbols: T = tokens of one sequence so far, C = capacity, W = window_size, G = C - W + 1.
// L(T) = T while T <= C, else T - G*ceil((T-C)/G): whole blocks of G rows leave at once, so that
// rows move once in G single-token steps. Row i holds position T - L(T) + i.
#pragma once

#include <cstdint>
#include <limits>

namespace kvcheck::kernels {

class Eviction {
 public:
  /// Keeps every token.
  static Eviction never() { return {std::numeric_limits<std::int64_t>::max(), 0}; }
  /// \pre 1 <= window <= capacity
  static Eviction blocks(std::int64_t capacity, std::int64_t window) { return {capacity, window}; }

  /// L(T). \pre length >= 0
  std::int64_t resident(std::int64_t length) const {
    if (length <= capacity_) return length;
    const std::int64_t period = capacity_ - window_ + 1;
    const std::int64_t over = length - capacity_;
    return length - period * (over / period + (over % period != 0 ? 1 : 0));
  }

  /// Rows that the first query of a step after `past` tokens still reads: min(P, W-1).
  std::int64_t required(std::int64_t past) const {
    if (window_ == 0) return past;
    return past < window_ ? past : window_ - 1;
  }

  /// Dropping the newest `tokens` of `length` leaves every row where the shorter length has it.
  /// \pre 0 <= tokens <= length
  bool rollback_is_exact(std::int64_t length, std::int64_t tokens) const {
    return resident(length - tokens) == resident(length) - tokens;
  }

  /// Largest k for which dropping 1..k tokens is exact: T while T <= C, else L(T) - W.
  std::int64_t max_exact_rollback(std::int64_t length) const {
    return length <= capacity_ ? length : resident(length) - window_;
  }

 private:
  Eviction(std::int64_t capacity, std::int64_t window) : capacity_(capacity), window_(window) {}

  std::int64_t capacity_;
  std::int64_t window_;  // 0 = never evicts.
};

}  // namespace kvcheck::kernels
