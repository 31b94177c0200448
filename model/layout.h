// Cache layouts: pure functions from a length to the rows that are resident.
//
// Symbols: T = tokens of one sequence so far, C = capacity, W = window_size, G = C - W + 1.
// Source: windowed KV cache contract of GroupQueryAttention (contract 3.1, 3.4, 3.6).
#pragma once

#include <cstdint>
#include <memory>

#include "model/position.h"
#include "model/scenario.h"

namespace kvcheck::model {

/// One eviction policy. Rows [0, resident(T)) hold positions first_position(T) .. T-1 in order.
class Layout {
 public:
  virtual ~Layout() = default;

  /// L(T): rows that hold live positions after T tokens. Depends on T alone.
  /// \pre T >= 0
  virtual std::int64_t resident(std::int64_t length) const = 0;

  /// T - L(T).
  Position first_position(std::int64_t length) const { return {length - resident(length)}; }

  /// Whether dropping the newest `tokens` of `length` leaves rows in place for the shorter
  /// length: L(T-k) = L(T) - k.
  /// \pre 0 <= tokens <= length
  bool rollback_is_exact(std::int64_t length, std::int64_t tokens) const;

  /// Largest k such that every drop of 1..k tokens is exact.
  virtual std::int64_t max_exact_rollback(std::int64_t length) const = 0;

  /// Whether appending `tokens` to `past` must run on a temporary buffer, because the step
  /// evicts rows that its own first query still reads.
  virtual bool stages(std::int64_t past, std::int64_t tokens) const = 0;
};

/// Keeps every token; the rows of one sequence never move.
class FullLayout final : public Layout {
 public:
  std::int64_t resident(std::int64_t length) const override { return length; }
  std::int64_t max_exact_rollback(std::int64_t length) const override { return length; }
  bool stages(std::int64_t, std::int64_t) const override { return false; }
};

/// Block eviction: L(T) = T while T <= C, else T - G*ceil((T-C)/G).
class BlockLayout final : public Layout {
 public:
  /// \pre 1 <= window_size <= capacity <= kMaxLength
  BlockLayout(std::int64_t capacity, std::int64_t window_size);
  std::int64_t resident(std::int64_t length) const override;
  std::int64_t max_exact_rollback(std::int64_t length) const override;
  bool stages(std::int64_t past, std::int64_t tokens) const override;

 private:
  std::int64_t capacity_;
  std::int64_t window_size_;
};

/// The layout that a scenario's cache asks for.
std::unique_ptr<Layout> make_layout(const CacheSpec& cache);

}  // namespace kvcheck::model
