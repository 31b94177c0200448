// Closed forms of the layouts against a simulation that moves one token at a time.
#include "model/layout.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "model/layouts/block.h"
#include "model/layouts/full.h"

namespace kvcheck::model {
namespace {

constexpr std::int64_t kMaxCapacity = 24;
constexpr std::int64_t kMaxTokens = 200;

/// A buffer that is filled token by token: a full one first drops its oldest G rows.
class Buffer {
 public:
  Buffer(std::int64_t capacity, std::int64_t window)
      : capacity_(capacity), block_(capacity - window + 1) {}

  void append(std::int64_t position) {
    if (static_cast<std::int64_t>(rows_.size()) == capacity_) {
      rows_.erase(rows_.begin(), rows_.begin() + block_);
    }
    rows_.push_back(position);
  }
  const std::vector<std::int64_t>& rows() const { return rows_; }

 private:
  std::int64_t capacity_, block_;
  std::vector<std::int64_t> rows_;
};

/// Rows after T tokens, for every T up to `longest`.
std::vector<std::vector<std::int64_t>> simulate(std::int64_t capacity, std::int64_t window,
                                                std::int64_t longest) {
  Buffer buffer(capacity, window);
  std::vector<std::vector<std::int64_t>> states{{}};
  for (std::int64_t position = 0; position < longest; ++position) {
    buffer.append(position);
    states.push_back(buffer.rows());
  }
  return states;
}

template <class Check>
void for_each_layout(Check check) {
  for (std::int64_t capacity = 1; capacity <= kMaxCapacity; ++capacity) {
    for (std::int64_t window = 1; window <= capacity; ++window) check(capacity, window);
  }
}

TEST(BlockLayout, HoldsTheRowsOfTheTokenByTokenSimulation) {
  for_each_layout([](std::int64_t capacity, std::int64_t window) {
    const BlockLayout layout(capacity, window);
    const auto states = simulate(capacity, window, kMaxTokens);
    for (std::int64_t length = 0; length <= kMaxTokens; ++length) {
      const auto& rows = states[static_cast<std::size_t>(length)];
      ASSERT_EQ(layout.resident(length), static_cast<std::int64_t>(rows.size()))
          << "C=" << capacity << " W=" << window << " T=" << length;
      for (std::size_t row = 0; row < rows.size(); ++row) {
        ASSERT_EQ(rows[row], layout.first_position(length).value + static_cast<std::int64_t>(row))
            << "C=" << capacity << " W=" << window << " T=" << length << " row " << row;
      }
    }
  });
}

TEST(BlockLayout, KeepsTheWindowAndStaysWithinTheCapacity) {
  for_each_layout([](std::int64_t capacity, std::int64_t window) {
    const BlockLayout layout(capacity, window);
    const std::int64_t block = capacity - window + 1;
    for (std::int64_t length = 0; length <= kMaxTokens; ++length) {
      const std::int64_t resident = layout.resident(length);
      ASSERT_GE(resident, std::min(length, window));
      ASSERT_LE(resident, std::min(length, capacity));
      if (length > capacity) {
        ASSERT_EQ(resident, layout.resident(length + block));
      }
      if (capacity == window) {
        ASSERT_EQ(resident, std::min(length, capacity));
      }
    }
  });
}

TEST(BlockLayout, RollbackIsExactWhereTheShorterBufferIsAPrefix) {
  for_each_layout([](std::int64_t capacity, std::int64_t window) {
    const BlockLayout layout(capacity, window);
    const auto states = simulate(capacity, window, kMaxTokens);
    for (std::int64_t length = 0; length <= kMaxTokens; ++length) {
      const auto& now = states[static_cast<std::size_t>(length)];
      std::int64_t exact_in_a_row = 0;
      bool unbroken = true;
      for (std::int64_t tokens = 0; tokens <= length; ++tokens) {
        const auto& before = states[static_cast<std::size_t>(length - tokens)];
        const bool prefix = static_cast<std::int64_t>(before.size()) ==
                                static_cast<std::int64_t>(now.size()) - tokens &&
                            std::equal(before.begin(), before.end(), now.begin());
        ASSERT_EQ(layout.rollback_is_exact(length, tokens), prefix)
            << "C=" << capacity << " W=" << window << " T=" << length << " k=" << tokens;
        // The other form of the rule.
        const bool closed = length <= capacity || tokens <= layout.resident(length) - window;
        ASSERT_EQ(closed, prefix) << "C=" << capacity << " W=" << window << " T=" << length
                                  << " k=" << tokens;
        unbroken = unbroken && prefix;
        if (unbroken) exact_in_a_row = tokens;
      }
      ASSERT_EQ(layout.max_exact_rollback(length), exact_in_a_row)
          << "C=" << capacity << " W=" << window << " T=" << length;
    }
  });
}

TEST(BlockLayout, StagesWhereTheFirstQueryReadsARowThatTheStepEvicts) {
  for_each_layout([](std::int64_t capacity, std::int64_t window) {
    const BlockLayout layout(capacity, window);
    const std::int64_t widest = 2 * capacity + 1;
    const auto states = simulate(capacity, window, kMaxTokens + widest);
    const auto first = [&](std::int64_t length) {
      const auto& rows = states[static_cast<std::size_t>(length)];
      return rows.empty() ? 0 : rows.front();
    };
    const auto rows_at = [&](std::int64_t length) {
      return static_cast<std::int64_t>(states[static_cast<std::size_t>(length)].size());
    };
    for (std::int64_t past = 0; past <= kMaxTokens; ++past) {
      for (std::int64_t tokens = 1; tokens <= widest; ++tokens) {
        const std::int64_t length = past + tokens;
        const std::int64_t oldest_read = std::max<std::int64_t>(0, past - window + 1);
        const bool hazard = oldest_read < first(length);
        ASSERT_EQ(layout.stages(past, tokens), hazard)
            << "C=" << capacity << " W=" << window << " P=" << past << " S=" << tokens;
        // The other form of the condition.
        const bool evicts = first(length) > first(past);
        ASSERT_EQ(evicts && rows_at(length) < tokens + std::min(past, window - 1), hazard)
            << "C=" << capacity << " W=" << window << " P=" << past << " S=" << tokens;
      }
      ASSERT_FALSE(layout.stages(past, 1)) << "C=" << capacity << " W=" << window << " P=" << past;
      ASSERT_FALSE(layout.stages(past, 0)) << "C=" << capacity << " W=" << window << " P=" << past;
    }
  });
}

TEST(BlockLayout, FollowsTheWorkedTableOfCapacity6Window4) {
  const BlockLayout layout(6, 4);
  const std::int64_t resident[] = {1, 2, 3, 4, 5, 6, 4, 5, 6, 4, 5, 6, 4, 5, 6, 4};
  const std::int64_t first[] = {0, 0, 0, 0, 0, 0, 3, 3, 3, 6, 6, 6, 9, 9, 9, 12};
  for (std::int64_t length = 1; length <= 16; ++length) {
    EXPECT_EQ(layout.resident(length), resident[length - 1]) << "T=" << length;
    EXPECT_EQ(layout.first_position(length), Position{first[length - 1]}) << "T=" << length;
  }
  EXPECT_TRUE(layout.rollback_is_exact(12, 2));
  EXPECT_FALSE(layout.rollback_is_exact(12, 3));
}

TEST(BlockLayout, PlansTheExampleStepsOfCapacity6Window4) {
  const BlockLayout layout(6, 4);
  struct Example {
    std::int64_t past, tokens, end_before, end_after, kept;
    bool staged;
  };
  const Example examples[] = {
      {6, 1, 6, 4, 3, false}, {6, 3, 6, 6, 3, false}, {5, 2, 5, 4, 2, true}, {0, 8, 0, 5, -3, true},
      {3, 4, 3, 4, 0, true},  {7, 2, 4, 6, 4, false}, {8, 8, 5, 4, -4, true}};
  for (const auto& e : examples) {
    EXPECT_EQ(layout.resident(e.past), e.end_before) << e.past << "," << e.tokens;
    EXPECT_EQ(layout.resident(e.past + e.tokens), e.end_after) << e.past << "," << e.tokens;
    EXPECT_EQ(layout.resident(e.past + e.tokens) - e.tokens, e.kept) << e.past << "," << e.tokens;
    EXPECT_EQ(layout.stages(e.past, e.tokens), e.staged) << e.past << "," << e.tokens;
  }
}

/// L(T) by the formula of the contract, in 128 bits.
std::int64_t wide_resident(std::int64_t capacity, std::int64_t window, std::int64_t length) {
  if (length <= capacity) return length;
  const __int128 block = static_cast<__int128>(capacity) - window + 1;
  const __int128 evictions = (static_cast<__int128>(length) - capacity + block - 1) / block;
  return static_cast<std::int64_t>(length - block * evictions);
}

TEST(BlockLayout, IsExactAtTheLargestLengths) {
  constexpr std::int64_t kInt32 = std::numeric_limits<std::int32_t>::max();
  constexpr std::int64_t kInt64 = std::numeric_limits<std::int64_t>::max();
  const std::int64_t sizes[][2] = {{1, 1},          {6, 4},           {24, 7},
                                   {kInt32, 1},     {kInt32, kInt32}, {kInt32, kInt32 - 1},
                                   {kInt32 - 1, 3}, {4112, 4096}};
  for (const auto& [capacity, window] : sizes) {
    const BlockLayout layout(capacity, window);
    for (const std::int64_t end : {kInt32, kInt32 + 100, kInt64}) {
      for (std::int64_t length = end - 50; length < end; ++length) {
        const std::int64_t resident = wide_resident(capacity, window, length);
        ASSERT_EQ(layout.resident(length), resident) << capacity << " " << window << " " << length;
        ASSERT_EQ(layout.first_position(length).value, length - resident);
        ASSERT_EQ(layout.max_exact_rollback(length),
                  length <= capacity ? length : resident - window);
        for (const std::int64_t tokens : {std::int64_t{1}, std::int64_t{5}, kInt32 - 60}) {
          const std::int64_t past = length - tokens;
          ASSERT_EQ(layout.rollback_is_exact(length, tokens),
                    wide_resident(capacity, window, past) == resident - tokens);
          ASSERT_EQ(layout.stages(past, tokens), resident - tokens < std::min(past, window - 1))
              << capacity << " " << window << " " << length << " " << tokens;
        }
      }
    }
  }
}

TEST(FullLayout, KeepsEveryTokenAndRollsBackAnywhere) {
  const FullLayout layout;
  for (const std::int64_t length :
       {std::int64_t{0}, std::int64_t{7}, std::numeric_limits<std::int64_t>::max() - 1}) {
    EXPECT_EQ(layout.resident(length), length);
    EXPECT_EQ(layout.first_position(length), Position{0});
    EXPECT_EQ(layout.max_exact_rollback(length), length);
    EXPECT_TRUE(layout.rollback_is_exact(length, length));
    EXPECT_FALSE(layout.stages(length, 5));
  }
}

TEST(MakeLayout, GivesTheLayoutThatTheCacheNames) {
  CacheSpec cache;
  cache.capacity = 6;
  cache.window_size = 4;
  EXPECT_EQ(make_layout(cache)->resident(7), 7);
  cache.layout = LayoutKind::block;
  EXPECT_EQ(make_layout(cache)->resident(7), 4);
  EXPECT_EQ(make_layout(cache)->resident(12), 6);
}

}  // namespace
}  // namespace kvcheck::model
