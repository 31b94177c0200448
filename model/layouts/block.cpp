// Closed forms of block eviction.
#include "model/layouts/block.h"

#include <algorithm>

namespace kvcheck::model {

BlockLayout::BlockLayout(std::int64_t capacity, std::int64_t window_size)
    : capacity_(capacity), window_size_(window_size) {}

std::int64_t BlockLayout::resident(std::int64_t length) const {
  if (length <= capacity_) return length;
  // 1 + (x - 1) / G is ceil(x / G) for x >= 1, and cannot overflow near the end of int64.
  const std::int64_t evictions = 1 + (length - capacity_ - 1) / block();
  return length - block() * evictions;
}

bool BlockLayout::rollback_is_exact(std::int64_t length, std::int64_t tokens) const {
  return resident(length - tokens) == resident(length) - tokens;
}

std::int64_t BlockLayout::max_exact_rollback(std::int64_t length) const {
  return length <= capacity_ ? length : resident(length) - window_size_;
}

bool BlockLayout::stages(std::int64_t past, std::int64_t tokens) const {
  // Rows of the past that survive at the front of the buffer; negative when the step's own
  // tokens alone overflow it.
  const std::int64_t kept = resident(past + tokens) - tokens;
  return kept < std::min(past, window_size_ - 1);
}

LengthShare BlockLayout::exact_drafts(std::int64_t tokens) const {
  return {std::max<std::int64_t>(0, block() - tokens), block()};
}

std::optional<std::int64_t> BlockLayout::capacity_for_drafts(std::int64_t) const { return {}; }

std::optional<std::int64_t> BlockLayout::capacity_without_staging(std::int64_t tokens) const {
  if (tokens > 1) return {};
  return window_size_;
}

}  // namespace kvcheck::model
