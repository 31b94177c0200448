// Closed forms of sinks with a sliding rest.
#include "model/layouts/sinks.h"

#include <algorithm>

namespace kvcheck::model {

SinksLayout::SinksLayout(std::int64_t capacity, std::int64_t window_size, std::int64_t sink_tokens)
    : capacity_(capacity), window_size_(window_size), sink_tokens_(sink_tokens) {}

std::int64_t SinksLayout::first_recent(std::int64_t length) const {
  return std::max(sink_tokens_, length - (capacity_ - sink_tokens_));
}

std::int64_t SinksLayout::resident(std::int64_t length) const {
  return std::min(length, capacity_);
}

Position SinksLayout::first_position(std::int64_t length) const {
  return {length <= capacity_ ? 0 : first_recent(length)};
}

std::optional<Row> SinksLayout::row_of(std::int64_t length, Position position) const {
  if (position.value < 0 || position.value >= length) return {};
  if (position.value < sink_tokens_) return Row{position.value};
  const std::int64_t recent = position.value - first_recent(length);
  if (recent < 0) return {};
  return Row{sink_tokens_ + recent};
}

std::optional<Position> SinksLayout::position_in_row(std::int64_t length, Row row) const {
  if (row.value < 0 || row.value >= resident(length)) return {};
  if (row.value < sink_tokens_) return Position{row.value};
  return Position{first_recent(length) + (row.value - sink_tokens_)};
}

Position SinksLayout::oldest_required(std::int64_t length) const { return {first_recent(length)}; }

std::int64_t SinksLayout::max_exact_rollback(std::int64_t length) const {
  return length <= capacity_ ? length : 0;
}

bool SinksLayout::stages(std::int64_t past, std::int64_t tokens) const {
  // Past C the oldest recent row is given away, and the first query behind the sinks reads it
  // unless its window begins later.
  return past + tokens > capacity_ && first_recent(past + tokens) > past - window_size_ + 1;
}

LengthShare SinksLayout::exact_drafts(std::int64_t) const { return {0, 1}; }

std::optional<std::int64_t> SinksLayout::capacity_for_drafts(std::int64_t) const { return {}; }

std::optional<std::int64_t> SinksLayout::capacity_without_staging(std::int64_t tokens) const {
  return sink_tokens_ + window_size_ + tokens - 1;
}

}  // namespace kvcheck::model
