// Every split and every rollback, counted from the scenarios and by closed forms.
#include <algorithm>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "properties/sweep/grid.h"

namespace kvcheck::properties {
namespace {

const Grid& grid() { return *find_grid("windowed-small"); }

/// L(T) and the exact depths of a block cache: contract 3.1 and 3.6.
std::int64_t resident(std::int64_t capacity, std::int64_t window, std::int64_t length) {
  const std::int64_t block = capacity - window + 1;
  return length <= capacity ? length : length - block * ((length - capacity + block - 1) / block);
}

bool exact(std::int64_t capacity, std::int64_t window, std::int64_t length, std::int64_t dropped) {
  return length <= capacity || dropped <= resident(capacity, window, length) - window;
}

struct Parts {
  std::vector<std::int64_t> before, after;
  std::int64_t dropped = 0;
};

Parts parts_of(const model::Scenario& s) {
  Parts parts;
  for (const auto& step : s.steps) {
    if (const auto* rollback = std::get_if<model::Rollback>(&step)) {
      parts.dropped = rollback->tokens.front();
      continue;
    }
    const std::int64_t tokens = std::get<model::Append>(step).tokens.front();
    (parts.dropped > 0 ? parts.after : parts.before).push_back(tokens);
  }
  return parts;
}

std::int64_t sum(const std::vector<std::int64_t>& list) {
  std::int64_t total = 0;
  for (const std::int64_t item : list) total += item;
  return total;
}

TEST(WindowedSmall, TheSplitsOfTwelveBeginWithEverySplitOfFewer) {
  // By capacity and window: the beginnings of the splits.
  std::map<std::pair<std::int64_t, std::int64_t>, std::set<std::vector<std::int64_t>>> beginnings;
  for (std::int64_t i = 0; i < grid().count; ++i) {
    const model::Scenario s = grid().at(i).scenario;
    const Parts parts = parts_of(s);
    if (parts.dropped > 0) continue;
    ASSERT_EQ(sum(parts.before), 12);
    auto& found = beginnings[{s.cache.capacity, *s.cache.window_size}];
    for (std::size_t n = 1; n <= parts.before.size(); ++n) {
      found.insert({parts.before.begin(), parts.before.begin() + static_cast<std::ptrdiff_t>(n)});
    }
  }
  ASSERT_EQ(beginnings.size(), 36u);
  // 2^0 + 2^1 + ... + 2^11.
  for (const auto& [cache, found] : beginnings) EXPECT_EQ(found.size(), 4095u) << cache.first;
}

TEST(WindowedSmall, EveryRollbackIsTakenInEveryWay) {
  using Rollback = std::array<std::int64_t, 4>;  // Capacity, window, length, dropped.
  std::map<Rollback, std::set<std::pair<std::size_t, std::size_t>>> ways;
  for (std::int64_t i = 0; i < grid().count; ++i) {
    const model::Scenario s = grid().at(i).scenario;
    const Parts parts = parts_of(s);
    if (parts.dropped == 0) continue;
    const Rollback rollback{s.cache.capacity, *s.cache.window_size, sum(parts.before),
                            parts.dropped};
    const bool is_exact = exact(rollback[0], rollback[1], rollback[2], rollback[3]);
    ASSERT_EQ(sum(parts.after), is_exact ? parts.dropped + 1 : 0) << i;
    ASSERT_TRUE(ways[rollback].insert({parts.before.size(), parts.after.size()}).second) << i;
  }
  std::int64_t expected = 0;
  for (std::int64_t capacity = 1; capacity <= 8; ++capacity) {
    for (std::int64_t window = 1; window <= capacity; ++window) {
      for (std::int64_t length = 1; length <= 12; ++length) {
        for (std::int64_t dropped = 1; dropped <= length; ++dropped) {
          const std::size_t before = length == 1 ? 1 : 2;
          const std::size_t after = exact(capacity, window, length, dropped) ? 2 : 1;
          ASSERT_EQ((ways[{capacity, window, length, dropped}].size()), before * after)
              << capacity << " " << window << " " << length << " " << dropped;
          expected += static_cast<std::int64_t>(before * after);
        }
      }
    }
  }
  EXPECT_EQ(ways.size(), 36u * 78u);
  EXPECT_EQ(grid().count, 36 * 2048 + expected);
  EXPECT_EQ(grid().count, 81148);
  EXPECT_NE(grid().arithmetic.find("73,728"), std::string::npos) << grid().arithmetic;
}

TEST(WindowedSmall, StagingIsWhereTheContractNeedsIt) {
  // Contract 3.4: a step that evicts stages where L(T) < S + min(P, W - 1).
  const auto stages_axis = 6u;
  ASSERT_EQ(grid().axes[stages_axis].name, "a step stages");
  for (std::int64_t i = 0; i < grid().count; i += 3) {
    const auto [s, at] = grid().at(i);
    const std::int64_t capacity = s.cache.capacity, window = *s.cache.window_size;
    std::int64_t length = 0;
    bool stages = false;
    for (const auto& step : s.steps) {
      if (const auto* rollback = std::get_if<model::Rollback>(&step)) {
        length -= rollback->tokens.front();
        continue;
      }
      const std::int64_t past = length, tokens = std::get<model::Append>(step).tokens.front();
      length += tokens;
      const bool evicts =
          length - resident(capacity, window, length) > past - resident(capacity, window, past);
      stages = stages ||
               (evicts && resident(capacity, window, length) < tokens + std::min(past, window - 1));
    }
    ASSERT_EQ(at[stages_axis] == 1, stages) << i;
  }
}

}  // namespace
}  // namespace kvcheck::properties
