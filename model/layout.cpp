// What most layouts share, and the choice among them.
#include "model/layout.h"

#include "model/layouts/block.h"
#include "model/layouts/full.h"
#include "model/layouts/min_overflow.h"
#include "model/layouts/paged.h"
#include "model/layouts/ring.h"
#include "model/layouts/sinks.h"

namespace kvcheck::model {

std::optional<Row> Layout::row_of(std::int64_t length, Position position) const {
  const Position first = first_position(length);
  if (position < first || position.value >= length) return {};
  return Row{position.value - first.value};
}

std::optional<Position> Layout::position_in_row(std::int64_t length, Row row) const {
  if (row.value < 0 || row.value >= resident(length)) return {};
  return Position{first_position(length).value + row.value};
}

bool Layout::rollback_is_exact(std::int64_t length, std::int64_t tokens) const {
  // Newer positions follow their oldest one in every layout, so that one decides.
  const std::int64_t shorter = length - tokens;
  const Position oldest = oldest_required(shorter);
  return oldest.value >= shorter || row_of(length, oldest) == row_of(shorter, oldest);
}

std::unique_ptr<Layout> make_layout(const CacheSpec& cache) {
  const std::int64_t capacity = cache.capacity;
  const std::int64_t window = cache.window_size.value_or(capacity);
  switch (cache.layout) {
    case LayoutKind::full:
      break;
    case LayoutKind::block:
      return std::make_unique<BlockLayout>(capacity, window);
    case LayoutKind::min_overflow:
      return std::make_unique<MinOverflowLayout>(capacity, window);
    case LayoutKind::ring:
      return std::make_unique<RingLayout>(capacity, window);
    case LayoutKind::sinks:
      return std::make_unique<SinksLayout>(
          capacity, cache.window_size.value_or(capacity - cache.sink_tokens), cache.sink_tokens);
    case LayoutKind::paged:
      return std::make_unique<PagedLayout>(capacity, cache.window_size, cache.page_size);
  }
  return std::make_unique<FullLayout>();
}

bool keeps_every_token(const CacheSpec& cache) {
  return cache.layout == LayoutKind::full ||
         (cache.layout == LayoutKind::paged && !cache.window_size);
}

std::int64_t least_capacity(const CacheSpec& cache) {
  const std::int64_t window = cache.window_size.value_or(0);
  switch (cache.layout) {
    case LayoutKind::full:
      return 0;
    case LayoutKind::sinks:
      return cache.sink_tokens + window;
    case LayoutKind::paged:
      return rows_of_pages(window, cache.page_size);
    default:
      return window;
  }
}

}  // namespace kvcheck::model
