// The older wording of the windowed cache: the newest C tokens, shifted by every overflow. The
// rewind check of ONNX Runtime GenAI assumes it, and the CUDA kernel kept it until PR 32419
// (contract 3.5, 3.6, 4.13).
#pragma once

#include <cstdint>
#include <optional>

#include "model/layout.h"

namespace kvcheck::model {

/// L(T) = min(T, C), rows in order.
///
/// Rollback: exact iff T <= C, or k = T. Past C every token moves every row, so no row is where a
/// shorter length has it.
/// Staging: iff T - C > max(0, P - W + 1); never at any P iff C >= W + S - 1.
/// Drafts: none is exact once the cache has filled, at any capacity.
class MinOverflowLayout final : public Layout {
 public:
  /// \pre 1 <= window_size <= capacity <= kMaxLength
  MinOverflowLayout(std::int64_t capacity, std::int64_t window_size);
  std::int64_t resident(std::int64_t length) const override;
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
