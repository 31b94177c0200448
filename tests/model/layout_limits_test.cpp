// Layouts: which capacity serves drafts and steps, and lengths at the ends of the integers.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "model/layout.h"
#include "tests/model/simulated_buffer.h"

namespace kvcheck::model {
namespace {

constexpr std::int64_t kInt32 = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kInt64 = std::numeric_limits<std::int64_t>::max();

/// Caches of one capacity less than the least, to be given a capacity.
std::vector<CacheSpec> sizes() {
  std::vector<CacheSpec> out;
  for (std::int64_t window = 1; window <= 7; ++window) {
    out.push_back({LayoutKind::block, 0, window});
    out.push_back({LayoutKind::min_overflow, 0, window});
    out.push_back({LayoutKind::ring, 0, window});
    for (std::int64_t sinks = 0; sinks <= 3; ++sinks) {
      out.push_back({LayoutKind::sinks, 0, window, sinks});
    }
    for (std::int64_t page = 1; page <= 5; ++page) {
      out.push_back({LayoutKind::paged, 0, window, 0, page});
    }
  }
  return out;
}

constexpr std::int64_t kSlack = 24;  ///< Capacities beyond the least one that are tried.

bool draft_is_exact(const Layout& layout, std::int64_t past, std::int64_t tokens) {
  for (std::int64_t k = 1; k <= tokens; ++k) {
    if (!layout.rollback_is_exact(past + tokens, k)) return false;
  }
  return true;
}

/// Whether `good` holds at every length: up to three periods of the filled cache.
template <class Good>
bool at_every_length(const CacheSpec& cache, Good good) {
  const auto layout = make_layout(cache);
  for (std::int64_t past = 0; past <= 3 * cache.capacity + 12; ++past) {
    if (!good(*layout, past)) return false;
  }
  return true;
}

/// Compares the smallest capacity with trying them all.
template <class Claim, class Good>
void compare_capacities(Claim claim, Good good) {
  for (CacheSpec cache : sizes()) {
    const std::int64_t least = least_capacity(cache);
    const std::int64_t stride = std::max<std::int64_t>(1, cache.page_size);
    for (std::int64_t tokens = 1; tokens <= 8; ++tokens) {
      for (cache.capacity = least; cache.capacity <= least + kSlack; cache.capacity += stride) {
        const auto smallest = claim(*make_layout(cache), tokens);
        ASSERT_EQ(
            at_every_length(cache, [&](const Layout& layout,
                                       std::int64_t past) { return good(layout, past, tokens); }),
            smallest && cache.capacity >= *smallest)
            << words(cache) << " tokens=" << tokens;
        ASSERT_LE(smallest.value_or(0), least + kSlack) << words(cache) << " not tried";
      }
    }
  }
}

TEST(LayoutCapacity, ForDraftsIsTheSmallestThatServesAtEveryLength) {
  compare_capacities(
      [](const Layout& layout, std::int64_t tokens) { return layout.capacity_for_drafts(tokens); },
      [](const Layout& layout, std::int64_t past, std::int64_t tokens) {
        return draft_is_exact(layout, past, tokens) && !layout.stages(past, tokens);
      });
}

TEST(LayoutCapacity, WithoutStagingIsTheSmallestThatServesAtEveryLength) {
  compare_capacities([](const Layout& layout,
                        std::int64_t tokens) { return layout.capacity_without_staging(tokens); },
                     [](const Layout& layout, std::int64_t past, std::int64_t tokens) {
                       return !layout.stages(past, tokens);
                     });
}

TEST(LayoutCapacity, WindowPlusStepMinusOneHoldsForShiftsAndRingsAlone) {
  for (const std::int64_t window : {1, 4, 9}) {
    for (const std::int64_t step : {2, 3, 16}) {
      const std::int64_t capacity = window + step - 1;
      const auto smallest = [&](CacheSpec cache) {
        return make_layout(cache)->capacity_without_staging(step);
      };
      EXPECT_EQ(smallest({LayoutKind::ring, capacity, window}), capacity);
      EXPECT_EQ(smallest({LayoutKind::min_overflow, capacity, window}), capacity);
      EXPECT_EQ(smallest({LayoutKind::sinks, capacity + 2, window, 2}), capacity + 2);
      EXPECT_EQ(smallest({LayoutKind::block, capacity, window}), std::nullopt);
      EXPECT_EQ(smallest({LayoutKind::paged, capacity, window, 0, 1}), capacity);
      EXPECT_GT(smallest({LayoutKind::paged, 64, window, 0, 4}), capacity);
    }
  }
}

TEST(LayoutDrafts, AreExactAsOftenAsCounted) {
  for (CacheSpec cache : sizes()) {
    const std::int64_t least = least_capacity(cache);
    const std::int64_t stride = std::max<std::int64_t>(1, cache.page_size);
    for (cache.capacity = least; cache.capacity <= least + 12; cache.capacity += stride) {
      const auto layout = make_layout(cache);
      for (std::int64_t tokens = 1; tokens <= 14; ++tokens) {
        const LengthShare share = layout->exact_drafts(tokens);
        std::int64_t exact = 0;
        const std::int64_t filled = cache.capacity + cache.page_size + *cache.window_size;
        for (std::int64_t past = filled; past < filled + share.of; ++past) {
          const bool good = draft_is_exact(*layout, past, tokens);
          exact += good;
          ASSERT_FALSE(good && layout->stages(past, tokens)) << words(cache) << " P=" << past;
        }
        ASSERT_EQ(share.lengths, exact) << words(cache) << " k=" << tokens;
      }
    }
  }
}

using Wide = __int128;

/// First position of the recent run by its definition, in 128 bits.
Wide wide_first(const CacheSpec& cache, Wide length) {
  const Wide capacity = cache.capacity;
  if (cache.layout == LayoutKind::paged) {
    const Wide outside = length - *cache.window_size;
    return outside < 0 ? 0 : outside - outside % cache.page_size;
  }
  return length <= capacity ? 0 : length - (capacity - cache.sink_tokens);
}

bool wide_stages(const CacheSpec& cache, Wide past, Wide tokens) {
  const Wide length = past + tokens;
  const Wide read = std::max<Wide>(0, past - *cache.window_size + 1);
  if (cache.layout == LayoutKind::paged) {
    return (length - 1) / cache.page_size - read / cache.page_size + 1 >
           cache.capacity / cache.page_size;
  }
  return length > cache.capacity &&
         wide_first(cache, length) > std::max<Wide>(cache.sink_tokens, read);
}

TEST(LayoutLimits, AreExactAtTheLargestLengths) {
  const CacheSpec caches[] = {{LayoutKind::min_overflow, 6, 4},
                              {LayoutKind::min_overflow, kInt32, 1},
                              {LayoutKind::ring, 6, 4},
                              {LayoutKind::ring, kInt32, kInt32},
                              {LayoutKind::ring, kInt32 - 1, 3},
                              {LayoutKind::sinks, 6, 4, 2},
                              {LayoutKind::sinks, kInt32, 1, kInt32 - 1},
                              {LayoutKind::paged, 6, 4, 0, 3},
                              {LayoutKind::paged, kInt32 - 1, 7, 0, (kInt32 - 1) / 2},
                              {LayoutKind::paged, kInt32, 1, 0, kInt32},
                              {LayoutKind::paged, 4096, 1000, 0, 16}};
  for (const CacheSpec& cache : caches) {
    ASSERT_LE(least_capacity(cache), cache.capacity) << words(cache);
    const auto layout = make_layout(cache);
    for (const std::int64_t end : {kInt32, kInt32 + 100, 2 * kInt32 + 50, kInt64}) {
      for (std::int64_t left = 50; left >= 0; --left) {
        const std::int64_t length = end - left;
        const auto first = static_cast<std::int64_t>(wide_first(cache, length));
        ASSERT_EQ(layout->first_position(length).value, first) << words(cache) << " " << length;
        for (const std::int64_t position : {first, first + 1, length - 2, length - 1}) {
          const auto row = layout->row_of(length, {position});
          ASSERT_EQ(row.has_value(), position >= first && position < length);
          if (!row) continue;
          ASSERT_GE(row->value, 0);
          ASSERT_LT(row->value, cache.capacity);
          ASSERT_EQ(layout->position_in_row(length, *row), Position{position}) << words(cache);
        }
        ASSERT_FALSE(layout->row_of(length, {length}));
        ASSERT_FALSE(layout->position_in_row(length, {kInt64}));
        layout->position_in_row(length, {cache.capacity - 1});
        for (const std::int64_t tokens : {std::int64_t{1}, std::int64_t{5}, kInt32 - 60}) {
          ASSERT_EQ(layout->stages(length - tokens, tokens),
                    wide_stages(cache, length - tokens, tokens))
              << words(cache) << " " << length << " " << tokens;
          const std::int64_t deepest = layout->max_exact_rollback(length);
          ASSERT_TRUE(layout->rollback_is_exact(length, deepest)) << words(cache) << " " << length;
          ASSERT_EQ(layout->rollback_is_exact(length, tokens),
                    tokens <= deepest || length - tokens <= cache.sink_tokens)
              << words(cache) << " " << length << " " << tokens;
        }
      }
    }
  }
}

TEST(LayoutLimits, LargestSizesDoNotOverflowTheCapacities) {
  const CacheSpec sinks{LayoutKind::sinks, kMaxLength, 1, kMaxLength - 1};
  EXPECT_EQ(make_layout(sinks)->capacity_without_staging(kMaxLength), 2 * kMaxLength - 1);
  const CacheSpec ring{LayoutKind::ring, kMaxLength, kMaxLength};
  EXPECT_EQ(make_layout(ring)->capacity_for_drafts(kMaxLength), 2 * kMaxLength);
  CacheSpec paged{LayoutKind::paged, kMaxLength, kMaxLength, 0, kMaxLength};
  EXPECT_EQ(least_capacity(paged), 2 * kMaxLength);
  EXPECT_EQ(make_layout(paged)->capacity_without_staging(kMaxLength), 3 * kMaxLength);
  paged.page_size = 1;
  EXPECT_EQ(least_capacity(paged), kMaxLength);
}

}  // namespace
}  // namespace kvcheck::model
