// Cache buffers that are moved row by row, as a careless implementation would do it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "model/scenario.h"

namespace kvcheck::model {

using Rows = std::vector<std::int64_t>;  ///< Position in each row, kNoPosition where free.
inline constexpr std::int64_t kNoPosition = -1;

inline std::string words(const CacheSpec& cache) {
  return fmt::format("{} C={} W={} sinks={} page={}", to_string(cache.layout), cache.capacity,
                     cache.window_size.value_or(0), cache.sink_tokens, cache.page_size);
}

/// One buffer; takes positions 0, 1, 2, .. in steps of any size.
class SimulatedBuffer {
 public:
  explicit SimulatedBuffer(const CacheSpec& cache)
      : cache_(cache), rows_(static_cast<std::size_t>(cache.capacity), kNoPosition) {
    if (cache.page_size > 0) {
      for (std::int64_t i = 0; i < cache.capacity / cache.page_size; ++i) free_slots_.push_back(i);
    }
  }

  const Rows& rows() const { return rows_; }

  /// Appends `tokens` positions at once.
  /// \pre for paged: fits(tokens)
  void append(std::int64_t tokens) {
    switch (cache_.layout) {
      case LayoutKind::ring:
        for (std::int64_t i = 0; i < tokens; ++i) {
          row(cursor_) = length_++;
          if (++cursor_ == cache_.capacity) cursor_ = 0;
        }
        break;
      case LayoutKind::paged:
        release_before(oldest_read());
        for (std::int64_t i = 0; i < tokens; ++i) write_to_page();
        release_before(length_ - window());
        break;
      default:
        shift_in(tokens);
    }
  }

  /// Paged: whether the free pages hold the step, without what its first query reads.
  bool fits(std::int64_t tokens) const {
    SimulatedBuffer copy = *this;
    copy.release_before(oldest_read());
    const std::int64_t used = static_cast<std::int64_t>(copy.slots_.size()) * cache_.page_size;
    const std::int64_t room = copy.first_page_ * cache_.page_size + used - length_;
    return tokens <= room + static_cast<std::int64_t>(copy.free_slots_.size()) * cache_.page_size;
  }

 private:
  std::int64_t window() const { return cache_.window_size.value_or(length_ + 1); }
  std::int64_t oldest_read() const { return length_ - window() + 1; }
  std::int64_t& row(std::int64_t at) { return rows_[static_cast<std::size_t>(at)]; }

  /// All old and new positions one after the other; what is too much goes, behind the sinks.
  void shift_in(std::int64_t tokens) {
    std::deque<std::int64_t> list;
    for (const std::int64_t position : rows_) {
      if (position != kNoPosition) list.push_back(position);
    }
    for (std::int64_t i = 0; i < tokens; ++i) list.push_back(length_++);
    while (static_cast<std::int64_t>(list.size()) > cache_.capacity) {
      list.erase(list.begin() + cache_.sink_tokens);
    }
    rows_.assign(list.begin(), list.end());
    rows_.resize(static_cast<std::size_t>(cache_.capacity), kNoPosition);
  }

  void write_to_page() {
    const std::int64_t within = length_ % cache_.page_size;
    if (within == 0) {
      slots_.push_back(free_slots_.front());
      free_slots_.pop_front();
    }
    row(slots_.back() * cache_.page_size + within) = length_++;
  }

  /// Frees pages that end at or before `position`.
  void release_before(std::int64_t position) {
    while (!slots_.empty() && (first_page_ + 1) * cache_.page_size <= position) {
      for (std::int64_t i = 0; i < cache_.page_size; ++i) {
        row(slots_.front() * cache_.page_size + i) = kNoPosition;
      }
      free_slots_.push_back(slots_.front());
      slots_.pop_front();
      ++first_page_;
    }
  }

  CacheSpec cache_;
  Rows rows_;
  std::int64_t length_ = 0;
  std::int64_t cursor_ = 0;         ///< Ring: the row that is written next.
  std::deque<std::int64_t> slots_;  ///< Paged: slots of the live pages, oldest first.
  std::deque<std::int64_t> free_slots_;
  std::int64_t first_page_ = 0;
};

/// Buffers after every length up to `longest`, grown token by token.
inline std::vector<SimulatedBuffer> simulate(const CacheSpec& cache, std::int64_t longest) {
  std::vector<SimulatedBuffer> states{SimulatedBuffer(cache)};
  for (std::int64_t length = 0; length < longest; ++length) {
    states.push_back(states.back());
    states.back().append(1);
  }
  return states;
}

inline std::int64_t row_with(const Rows& rows, std::int64_t position) {
  return std::find(rows.begin(), rows.end(), position) - rows.begin();
}

inline bool holds(const Rows& rows, std::int64_t position) {
  return row_with(rows, position) < static_cast<std::int64_t>(rows.size());
}

/// Some query of the step reads a position that the finished buffer no longer holds; for pages,
/// the step finds no free page.
inline bool needs_staging(const CacheSpec& cache, const SimulatedBuffer& before, const Rows& after,
                          std::int64_t past, std::int64_t tokens) {
  if (cache.layout == LayoutKind::paged) return !before.fits(tokens);
  // Together the queries read from the first one's window up to the last token.
  const std::int64_t length = past + tokens;
  const std::int64_t read = std::max<std::int64_t>(0, past - *cache.window_size + 1);
  if (length - read > cache.capacity) return true;
  for (std::int64_t p = read; p < length; ++p) {
    if (!holds(after, p)) return true;
  }
  return false;
}

/// Whether every position from `oldest` on that length T-k holds stands in the same row at T.
inline bool in_place(const Rows& longer, const Rows& shorter, std::int64_t oldest) {
  for (std::size_t row = 0; row < shorter.size(); ++row) {
    if (shorter[row] >= std::max<std::int64_t>(0, oldest) && longer[row] != shorter[row]) {
      return false;
    }
  }
  return true;
}

}  // namespace kvcheck::model
