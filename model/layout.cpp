// Closed forms of the cache layouts.
#include "model/layout.h"

#include <algorithm>

namespace kvcheck::model {

bool Layout::rollback_is_exact(std::int64_t length, std::int64_t tokens) const {
  return resident(length - tokens) == resident(length) - tokens;
}

BlockLayout::BlockLayout(std::int64_t capacity, std::int64_t window_size)
    : capacity_(capacity), window_size_(window_size) {}

std::int64_t BlockLayout::resident(std::int64_t length) const {
  if (length <= capacity_) return length;
  const std::int64_t block = capacity_ - window_size_ + 1;
  // 1 + (x - 1) / G is ceil(x / G) for x >= 1, and cannot overflow near the end of int64.
  const std::int64_t evictions = 1 + (length - capacity_ - 1) / block;
  return length - block * evictions;
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

std::unique_ptr<Layout> make_layout(const CacheSpec& cache) {
  if (cache.layout == LayoutKind::block) {
    return std::make_unique<BlockLayout>(cache.capacity,
                                         cache.window_size.value_or(cache.capacity));
  }
  return std::make_unique<FullLayout>();
}

}  // namespace kvcheck::model
