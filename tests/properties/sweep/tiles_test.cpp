// Around every edge, and as many keys as are said.
#include <algorithm>

#include <gtest/gtest.h>

#include "model/visibility.h"
#include "properties/sweep/grid.h"

namespace kvcheck::properties {
namespace {

const Grid& grid() { return *find_grid("tiles"); }

std::vector<std::int64_t> numbers(std::size_t axis) {
  std::vector<std::int64_t> list;
  for (const auto& value : grid().axes[axis].values) list.push_back(std::stoll(value));
  return list;
}

TEST(Tiles, HasEveryPowerOfTwoAndItsNeighbours) {
  const auto keys = numbers(0);
  for (std::int64_t edge = 1; edge <= 4096; edge *= 2) {
    for (const std::int64_t n : {edge - 1, edge, edge + 1}) {
      EXPECT_EQ(std::ranges::count(keys, n), n > 0 ? 1 : 0) << n;
    }
  }
  // Rows of a unit of cpu-flash and its multiples; a chunk and a tile more.
  for (const std::int64_t n : {383, 384, 385, 767, 768, 769, 575, 576, 577}) {
    EXPECT_EQ(std::ranges::count(keys, n), 1) << n;
  }
  EXPECT_TRUE(std::ranges::is_sorted(keys));
}

TEST(Tiles, CountIsThatOfItsAxesLessStepsLongerThanAFullCache) {
  // 38 numbers of keys up to 600 with 15 head sizes, 15 longer ones with 4; 3 steps, 3 caches, 2
  // types. Steps of 3 do not fit 1 and 2 keys, steps of 9 not 1, 2, 3, 4, 5, 7 and 8.
  ASSERT_EQ(numbers(0).size(), 53u);
  const std::int64_t all = (38 * 15 + 15 * 4) * 3 * 3 * 2;
  EXPECT_EQ(grid().count, all - (2 + 7) * 15 * 2);
}

TEST(Tiles, TheNewestQuerySeesAsManyKeysAsTheAxisSays) {
  const auto keys = numbers(0);
  for (std::int64_t i = 0; i < grid().count; i += 13) {
    const auto [s, at] = grid().at(i);
    const model::Timeline timeline(s);
    const std::size_t last = s.steps.size() - 1;
    const std::int64_t newest = std::get<model::Append>(s.steps[last]).queries.front() - 1;
    const auto seen = model::visible_positions(s, timeline, last, 0, 1, newest);
    ASSERT_EQ(std::ssize(seen), keys[static_cast<std::size_t>(at[0])]) << i;
  }
}

TEST(Tiles, TheWindowedCacheEvictsInItsStep) {
  for (std::int64_t i = 0; i < grid().count; i += 13) {
    const auto [s, at] = grid().at(i);
    if (s.cache.layout != model::LayoutKind::block) continue;
    const model::Timeline timeline(s);
    ASSERT_GT(timeline.steps().back().entries[0].evicted, 0) << i;
  }
}

}  // namespace
}  // namespace kvcheck::properties
