// Block eviction, the windowed KV cache contract of GroupQueryAttention (contract 3.1, 3.4, 3.6).
#pragma once

#include <cstdint>
#include <optional>

#include "model/layout.h"

namespace kvcheck::model {

/// A full buffer first drops its oldest G = C - W + 1 rows: L(T) = T while T <= C, else
/// T - G*ceil((T-C)/G).
///
/// Rollback: exact iff L(T-k) = L(T) - k, as the contract puts it; for T > C that is
/// k <= L(T) - W. It calls the drop of everything (k = T > C) inexact, though no row is left to be
/// in the wrong place.
/// Staging: iff L(T) - S < min(P, W-1). A step of two or more that ends at T = C + 1 stages at any
/// capacity, since the eviction leaves W rows; one of a single token never does.
/// Drafts: exact iff k <= C - L(P), that is at G - k of G lengths.
class BlockLayout final : public Layout {
 public:
  /// \pre 1 <= window_size <= capacity <= kMaxLength
  BlockLayout(std::int64_t capacity, std::int64_t window_size);
  std::int64_t resident(std::int64_t length) const override;
  bool rollback_is_exact(std::int64_t length, std::int64_t tokens) const override;
  std::int64_t max_exact_rollback(std::int64_t length) const override;
  bool stages(std::int64_t past, std::int64_t tokens) const override;
  LengthShare exact_drafts(std::int64_t tokens) const override;
  std::optional<std::int64_t> capacity_for_drafts(std::int64_t tokens) const override;
  std::optional<std::int64_t> capacity_without_staging(std::int64_t tokens) const override;

 private:
  std::int64_t block() const { return capacity_ - window_size_ + 1; }  ///< G.

  std::int64_t capacity_;
  std::int64_t window_size_;
};

}  // namespace kvcheck::model
