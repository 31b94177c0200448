// Layouts beside full and block: closed forms against buffers that are moved row by row.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "model/layout.h"
#include "tests/model/simulated_buffer.h"

namespace kvcheck::model {
namespace {

constexpr std::int64_t kMaxCapacity = 24;
constexpr std::int64_t kMaxTokens = 200;

class LayoutPolicy : public testing::TestWithParam<LayoutKind> {};

INSTANTIATE_TEST_SUITE_P(Kinds, LayoutPolicy,
                         testing::Values(LayoutKind::min_overflow, LayoutKind::ring,
                                         LayoutKind::sinks, LayoutKind::paged),
                         [](const auto& kind) { return std::string(to_string(kind.param)); });

/// Every window at this capacity, with a few numbers of sinks and every size of pages.
std::vector<CacheSpec> caches(LayoutKind kind, std::int64_t capacity) {
  std::vector<CacheSpec> out;
  CacheSpec cache;
  cache.layout = kind;
  cache.capacity = capacity;
  const auto add_windows = [&] {
    for (std::int64_t window = 1; window <= capacity; ++window) {
      cache.window_size = window;
      if (least_capacity(cache) <= capacity) out.push_back(cache);
    }
  };
  if (kind == LayoutKind::paged) {
    for (std::int64_t page = 1; page <= capacity; ++page) {
      cache.page_size = page;
      if (capacity % page == 0) add_windows();
    }
  } else if (kind == LayoutKind::sinks) {
    for (const std::int64_t sinks : {1, 4}) {
      cache.sink_tokens = sinks;
      add_windows();
    }
  } else {
    add_windows();
  }
  return out;
}

void for_each_cache(LayoutKind kind, const std::function<void(const CacheSpec&)>& check) {
  for (std::int64_t capacity = 1; capacity <= kMaxCapacity; ++capacity) {
    for (const CacheSpec& cache : caches(kind, capacity)) {
      check(cache);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

/// The rows that the layout asks for.
Rows rows_of(const Layout& layout, const CacheSpec& cache, std::int64_t length) {
  Rows rows;
  for (std::int64_t row = 0; row < cache.capacity; ++row) {
    const auto position = layout.position_in_row(length, {row});
    rows.push_back(position ? position->value : kNoPosition);
  }
  return rows;
}

const Rows& at(const std::vector<SimulatedBuffer>& states, std::int64_t length) {
  return states[static_cast<std::size_t>(length)].rows();
}

/// Smallest p such that p .. T-1 are all held.
std::int64_t first_of_run(const Rows& rows, std::int64_t length) {
  std::int64_t first = length;
  while (first > 0 && holds(rows, first - 1)) --first;
  return first;
}

TEST_P(LayoutPolicy, HoldsTheRowsOfTheTokenByTokenSimulation) {
  for_each_cache(GetParam(), [](const CacheSpec& cache) {
    const auto layout = make_layout(cache);
    const auto states = simulate(cache, kMaxTokens);
    for (std::int64_t length = 0; length <= kMaxTokens; ++length) {
      const Rows& rows = at(states, length);
      ASSERT_EQ(rows_of(*layout, cache, length), rows) << words(cache) << " T=" << length;
      ASSERT_EQ(layout->resident(length),
                cache.capacity - std::count(rows.begin(), rows.end(), kNoPosition));
      ASSERT_EQ(layout->first_position(length).value, first_of_run(rows, length))
          << words(cache) << " T=" << length;
      ASSERT_FALSE(layout->position_in_row(length, {-1}));
      ASSERT_FALSE(layout->position_in_row(length, {cache.capacity}));
      for (std::int64_t position = -1; position <= length; ++position) {
        const auto row = layout->row_of(length, {position});
        const bool held = position >= 0 && holds(rows, position);
        ASSERT_EQ(row.has_value(), held) << words(cache) << " T=" << length << " p=" << position;
        if (!held) continue;
        ASSERT_EQ(row->value, row_with(rows, position));
      }
    }
  });
}

TEST_P(LayoutPolicy, KeepsTheWindowAndTheSinks) {
  for_each_cache(GetParam(), [](const CacheSpec& cache) {
    const auto layout = make_layout(cache);
    for (std::int64_t length = 0; length <= kMaxTokens; ++length) {
      ASSERT_LE(layout->first_position(length).value,
                std::max<std::int64_t>(0, length - *cache.window_size));
      for (std::int64_t p = 0; p < std::min(length, cache.sink_tokens); ++p) {
        ASSERT_EQ(layout->row_of(length, {p}), Row{p}) << words(cache) << " T=" << length;
      }
    }
  });
}

TEST_P(LayoutPolicy, StepsOfEverySizeLeaveTheSameRowsAndStageWhereTheyMust) {
  std::int64_t staged = 0, unstaged_evictions = 0;
  for_each_cache(GetParam(), [&](const CacheSpec& cache) {
    const auto layout = make_layout(cache);
    const std::int64_t widest = 2 * cache.capacity;
    const std::int64_t last_past = kMaxTokens - widest;
    const auto states = simulate(cache, kMaxTokens);
    for (std::int64_t past = 0; past <= last_past; ++past) {
      const SimulatedBuffer& before = states[static_cast<std::size_t>(past)];
      for (std::int64_t tokens = 1; tokens <= widest; ++tokens) {
        const Rows& after = at(states, past + tokens);
        const bool stage = needs_staging(cache, before, after, past, tokens);
        ASSERT_EQ(layout->stages(past, tokens), stage)
            << words(cache) << " P=" << past << " S=" << tokens;
        staged += stage;
        // A staged paged step runs on pages of its own.
        if (cache.layout == LayoutKind::paged && stage) continue;
        SimulatedBuffer stepped = before;
        stepped.append(tokens);
        ASSERT_EQ(stepped.rows(), after) << words(cache) << " P=" << past << " S=" << tokens;
        unstaged_evictions += !stage && layout->first_position(past + tokens).value > 0;
      }
      ASSERT_FALSE(layout->stages(past, 1)) << words(cache) << " P=" << past;
      ASSERT_FALSE(layout->stages(past, 0)) << words(cache) << " P=" << past;
    }
  });
  EXPECT_GT(staged, 1000);
  EXPECT_GT(unstaged_evictions, 1000);
}

TEST_P(LayoutPolicy, RollbackIsExactWhereTheRowsAreInPlace) {
  std::int64_t inexact = 0;
  for_each_cache(GetParam(), [&](const CacheSpec& cache) {
    const bool ring = cache.layout == LayoutKind::ring;
    const auto layout = make_layout(cache);
    const auto states = simulate(cache, kMaxTokens);
    for (std::int64_t length = 0; length <= kMaxTokens; ++length) {
      std::int64_t exact_in_a_row = 0;
      for (std::int64_t tokens = 0; tokens <= length; ++tokens) {
        const std::int64_t shorter = length - tokens;
        const Rows& now = at(states, length);
        const Rows& then = at(states, shorter);
        const bool restored = in_place(now, then, 0);
        const bool exact = ring ? in_place(now, then, shorter - *cache.window_size) : restored;
        ASSERT_EQ(layout->rollback_is_exact(length, tokens), exact)
            << words(cache) << " T=" << length << " k=" << tokens;
        ASSERT_EQ(layout->rollback_restores(length, tokens), restored)
            << words(cache) << " T=" << length << " k=" << tokens;
        if (exact && exact_in_a_row == tokens - 1) exact_in_a_row = tokens;
        inexact += !exact;
      }
      ASSERT_EQ(layout->max_exact_rollback(length), exact_in_a_row)
          << words(cache) << " T=" << length;
    }
  });
  EXPECT_GT(inexact, 1000);
}

TEST(LayoutPolicies, RollbackFollowsTheClosedForms) {
  const auto exact = [](const CacheSpec& cache, std::int64_t length, std::int64_t tokens) {
    if (tokens == length) return true;
    const std::int64_t window = *cache.window_size;
    switch (cache.layout) {
      case LayoutKind::ring:
        return length <= cache.capacity || tokens <= cache.capacity - window;
      case LayoutKind::sinks:
        return length <= cache.capacity || tokens == 0 || length - tokens <= cache.sink_tokens;
      case LayoutKind::paged:
        return length - window < cache.page_size || tokens <= (length - window) % cache.page_size;
      default:
        return length <= cache.capacity || tokens == 0;
    }
  };
  for (const LayoutKind kind :
       {LayoutKind::min_overflow, LayoutKind::ring, LayoutKind::sinks, LayoutKind::paged}) {
    for_each_cache(kind, [&](const CacheSpec& cache) {
      const auto layout = make_layout(cache);
      for (std::int64_t length = 0; length <= 100; ++length) {
        for (std::int64_t tokens = 0; tokens <= length; ++tokens) {
          ASSERT_EQ(layout->rollback_is_exact(length, tokens), exact(cache, length, tokens))
              << words(cache) << " T=" << length << " k=" << tokens;
        }
      }
    });
  }
}

TEST(PagedLayout, WithoutAWindowKeepsEveryTokenInOrder) {
  const CacheSpec cache{LayoutKind::paged, 12, {}, 0, 4};
  const auto layout = make_layout(cache);
  for (std::int64_t length = 0; length <= 12; ++length) {
    EXPECT_EQ(layout->resident(length), length);
    EXPECT_EQ(layout->max_exact_rollback(length), length);
    EXPECT_TRUE(layout->rollback_is_exact(length, length));
    EXPECT_FALSE(layout->stages(0, length));
    for (std::int64_t row = 0; row < length; ++row) {
      EXPECT_EQ(layout->position_in_row(length, {row}), Position{row});
    }
    EXPECT_FALSE(layout->position_in_row(length, {length}));
  }
}

TEST(LayoutPolicies, HandCountedRows) {
  const auto rows = [](const CacheSpec& cache, std::int64_t length) {
    return rows_of(*make_layout(cache), cache, length);
  };
  // ROCm/hip-ep#808: C = W = 4 at T = 7, row r <-> the one position congruent to r.
  EXPECT_EQ(rows({LayoutKind::ring, 4, 4}, 7), (Rows{4, 5, 6, 3}));
  // litgpt#2182: W = C = 4, a prompt of 6: row 0 holds 4 when query 0 looks for 0 there.
  EXPECT_EQ(rows({LayoutKind::ring, 4, 4}, 6), (Rows{4, 5, 2, 3}));
  EXPECT_TRUE(make_layout({LayoutKind::ring, 4, 4})->stages(0, 6));
  EXPECT_EQ(rows({LayoutKind::min_overflow, 6, 4}, 8), (Rows{2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(rows({LayoutKind::sinks, 6, 4, 2}, 9), (Rows{0, 1, 5, 6, 7, 8}));
  // W = 4, pages of 3: at T = 8 page 0 (0-2) is out of the window 4-7; page 1 (3-5) is not.
  EXPECT_EQ(rows({LayoutKind::paged, 6, 4, 0, 3}, 8), (Rows{6, 7, -1, 3, 4, 5}));
}

}  // namespace
}  // namespace kvcheck::model
