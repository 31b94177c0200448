// A ring buffer: the position modulo the capacity, as in litgpt and in the rotating caches of MLX.
#pragma once

#include <cstdint>
#include <optional>

#include "model/layout.h"

namespace kvcheck::model {

/// Position p stands in row p % C; positions max(0, T-C) .. T-1 are resident.
///
/// Rollback: the rows of the dropped tokens held older positions once, and those are lost. So the
/// rows of length T-k are never restored past C; the rollback is exact while the W newest
/// positions of length T-k were not overwritten: T <= C, or k <= C - W, or k = T. What is left
/// after it are positions max(0, T-C) .. T-k-1 (see EntryStep::reach).
/// Staging: iff T - C > max(0, P - W + 1); never at any P iff C >= W + S - 1.
/// Drafts: exact at every length iff C >= W + k; less exact nowhere once the ring has filled.
class RingLayout final : public Layout {
 public:
  /// \pre 1 <= window_size <= capacity <= kMaxLength
  RingLayout(std::int64_t capacity, std::int64_t window_size);
  std::int64_t resident(std::int64_t length) const override;
  std::optional<Row> row_of(std::int64_t length, Position position) const override;
  std::optional<Position> position_in_row(std::int64_t length, Row row) const override;
  Position oldest_required(std::int64_t length) const override;
  bool rollback_restores(std::int64_t length, std::int64_t tokens) const override;
  std::int64_t max_exact_rollback(std::int64_t length) const override;
  bool stages(std::int64_t past, std::int64_t tokens) const override;
  LengthShare exact_drafts(std::int64_t tokens) const override;
  std::optional<std::int64_t> capacity_for_drafts(std::int64_t tokens) const override;
  std::optional<std::int64_t> capacity_without_staging(std::int64_t tokens) const override;

 private:
  std::int64_t capacity_;
  std::int64_t window_size_;
};

}  // namespace kvcheck::model
