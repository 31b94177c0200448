// Closed forms of paged caches.
#include "model/layouts/paged.h"

#include <algorithm>

namespace kvcheck::model {

std::int64_t rows_of_pages(std::int64_t positions, std::int64_t page_size) {
  if (positions <= 1) return page_size;
  return page_size * ((positions - 2) / page_size + 2);
}

PagedLayout::PagedLayout(std::int64_t capacity, std::optional<std::int64_t> window_size,
                         std::int64_t page_size)
    : capacity_(capacity), window_size_(window_size), page_size_(page_size) {}

std::int64_t PagedLayout::first_page(std::int64_t length) const {
  if (!window_size_) return 0;
  return std::max<std::int64_t>(0, length - *window_size_) / page_size_;
}

std::int64_t PagedLayout::resident(std::int64_t length) const {
  return length - page_size_ * first_page(length);
}

std::optional<Row> PagedLayout::row_of(std::int64_t length, Position position) const {
  if (position < first_position(length) || position.value >= length) return {};
  return Row{position.value % capacity_};
}

std::optional<Position> PagedLayout::position_in_row(std::int64_t length, Row row) const {
  if (length == 0 || row.value < 0 || row.value >= capacity_) return {};
  const std::int64_t last_page = (length - 1) / page_size_;
  const std::int64_t slot = row.value / page_size_;
  if (slot > last_page) return {};
  const std::int64_t page = last_page - (last_page - slot) % slots();
  const std::int64_t begin = page * page_size_;
  const std::int64_t within = row.value % page_size_;
  if (page < first_page(length) || within >= length - begin) return {};
  return Position{begin + within};
}

std::int64_t PagedLayout::max_exact_rollback(std::int64_t length) const {
  if (first_page(length) == 0) return length;
  return (length - *window_size_) % page_size_;
}

bool PagedLayout::stages(std::int64_t past, std::int64_t tokens) const {
  if (!window_size_ || tokens == 0) return false;
  const std::int64_t oldest_read = std::max<std::int64_t>(0, past - *window_size_ + 1);
  return (past + tokens - 1) / page_size_ - oldest_read / page_size_ >= slots();
}

LengthShare PagedLayout::exact_drafts(std::int64_t tokens) const {
  if (!window_size_) return {1, 1};
  return {std::max<std::int64_t>(0, page_size_ - tokens), page_size_};
}

std::optional<std::int64_t> PagedLayout::capacity_for_drafts(std::int64_t) const {
  if (window_size_) return {};
  return 0;
}

std::optional<std::int64_t> PagedLayout::capacity_without_staging(std::int64_t tokens) const {
  if (!window_size_) return 0;
  return rows_of_pages(*window_size_ + tokens - 1, page_size_);
}

}  // namespace kvcheck::model
