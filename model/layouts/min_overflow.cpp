// Closed forms of the layout that shifts with every overflow.
#include "model/layouts/min_overflow.h"

#include <algorithm>

namespace kvcheck::model {

MinOverflowLayout::MinOverflowLayout(std::int64_t capacity, std::int64_t window_size)
    : capacity_(capacity), window_size_(window_size) {}

std::int64_t MinOverflowLayout::resident(std::int64_t length) const {
  return std::min(length, capacity_);
}

std::int64_t MinOverflowLayout::max_exact_rollback(std::int64_t length) const {
  return length <= capacity_ ? length : 0;
}

bool MinOverflowLayout::stages(std::int64_t past, std::int64_t tokens) const {
  return past + tokens - capacity_ > std::max<std::int64_t>(0, past - window_size_ + 1);
}

LengthShare MinOverflowLayout::exact_drafts(std::int64_t) const { return {0, 1}; }

std::optional<std::int64_t> MinOverflowLayout::capacity_for_drafts(std::int64_t) const {
  return {};
}

std::optional<std::int64_t> MinOverflowLayout::capacity_without_staging(std::int64_t tokens) const {
  return window_size_ + tokens - 1;
}

}  // namespace kvcheck::model
