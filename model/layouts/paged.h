// Pages of fixed size that are freed when the window has left them, as in vLLM and other
// paged-attention caches.
#pragma once

#include <cstdint>
#include <optional>

#include "model/layout.h"

namespace kvcheck::model {

/// Page i holds positions [i*B, (i+1)*B), B = page_size. With a window it is freed once it lies
/// wholly before the W newest positions, (i+1)*B <= T - W; without one never. Freed pages are
/// taken again in the order in which they were freed, so that page i stands in physical slot
/// i % (C/B) and position p in row p % C. L(T) = T - B*floor(max(0, T-W) / B).
///
/// Rollback: exact iff no page was freed by the dropped tokens: T - W < B, or
/// k <= (T-W) mod B, or k = T. A freed page counts as lost, since another sequence may take it;
/// so the capacity does not matter.
/// Staging: iff the pages from the first query's oldest key to T-1 are more than the C/B slots;
/// never at any P iff C >= B*(ceil((W+S-2) / B) + 1). S = 1 gives the least capacity.
/// Drafts: exact iff they free no page, that is at B - k of B lengths, at any capacity.
class PagedLayout final : public Layout {
 public:
  /// \pre page_size >= 1; capacity is a multiple of it and at least rows_of_pages(window_size)
  PagedLayout(std::int64_t capacity, std::optional<std::int64_t> window_size,
              std::int64_t page_size);
  std::int64_t resident(std::int64_t length) const override;
  std::optional<Row> row_of(std::int64_t length, Position position) const override;
  std::optional<Position> position_in_row(std::int64_t length, Row row) const override;
  std::int64_t max_exact_rollback(std::int64_t length) const override;
  bool stages(std::int64_t past, std::int64_t tokens) const override;
  LengthShare exact_drafts(std::int64_t tokens) const override;
  std::optional<std::int64_t> capacity_for_drafts(std::int64_t tokens) const override;
  std::optional<std::int64_t> capacity_without_staging(std::int64_t tokens) const override;

 private:
  std::int64_t slots() const { return capacity_ / page_size_; }
  std::int64_t first_page(std::int64_t length) const;

  std::int64_t capacity_;
  std::optional<std::int64_t> window_size_;
  std::int64_t page_size_;
};

/// Rows of the pages that `positions` neighbours touch at the worst alignment: B*(ceil((n-1)/B)+1),
/// and one page for none.
/// \pre 0 <= positions <= 2 * kMaxLength, 1 <= page_size <= kMaxLength
std::int64_t rows_of_pages(std::int64_t positions, std::int64_t page_size);

}  // namespace kvcheck::model
