// Closed forms of the ring.
#include "model/layouts/ring.h"

#include <algorithm>

namespace kvcheck::model {

RingLayout::RingLayout(std::int64_t capacity, std::int64_t window_size)
    : capacity_(capacity), window_size_(window_size) {}

std::int64_t RingLayout::resident(std::int64_t length) const { return std::min(length, capacity_); }

std::optional<Row> RingLayout::row_of(std::int64_t length, Position position) const {
  if (position < first_position(length) || position.value >= length) return {};
  return Row{position.value % capacity_};
}

std::optional<Position> RingLayout::position_in_row(std::int64_t length, Row row) const {
  if (row.value < 0 || row.value >= resident(length)) return {};
  const std::int64_t newest = length - 1;
  return Position{newest - (newest - row.value) % capacity_};
}

Position RingLayout::oldest_required(std::int64_t length) const {
  return {std::max<std::int64_t>(0, length - window_size_)};
}

bool RingLayout::rollback_restores(std::int64_t length, std::int64_t tokens) const {
  return length <= capacity_ || tokens == 0 || tokens == length;
}

std::int64_t RingLayout::max_exact_rollback(std::int64_t length) const {
  return length <= capacity_ ? length : capacity_ - window_size_;
}

bool RingLayout::stages(std::int64_t past, std::int64_t tokens) const {
  return past + tokens - capacity_ > std::max<std::int64_t>(0, past - window_size_ + 1);
}

LengthShare RingLayout::exact_drafts(std::int64_t tokens) const {
  return {tokens <= capacity_ - window_size_ ? 1 : 0, 1};
}

std::optional<std::int64_t> RingLayout::capacity_for_drafts(std::int64_t tokens) const {
  return window_size_ + tokens;
}

std::optional<std::int64_t> RingLayout::capacity_without_staging(std::int64_t tokens) const {
  return window_size_ + tokens - 1;
}

}  // namespace kvcheck::model
