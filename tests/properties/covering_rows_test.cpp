// Every pair of choices stands in some row, and the rows are few.
#include "properties/covering_rows.h"

#include <set>

#include <gtest/gtest.h>

namespace kvcheck::properties {
namespace {

TEST(CoveringRows, HoldEveryPair) {
  const std::vector<int> levels = {2, 3, 4, 2, 5, 3, 1};
  const auto rows = covering_rows(levels);
  for (std::size_t i = 0; i < levels.size(); ++i) {
    for (std::size_t j = i + 1; j < levels.size(); ++j) {
      std::set<std::pair<int, int>> met;
      for (const auto& row : rows) {
        ASSERT_LT(row[i], levels[i]);
        met.insert({row[i], row[j]});
      }
      EXPECT_EQ(met.size(), static_cast<std::size_t>(levels[i] * levels[j])) << i << " " << j;
    }
  }
  // At least 4 * 5 are needed, all combinations are 720.
  EXPECT_GE(rows.size(), 20u);
  EXPECT_LE(rows.size(), 40u);
}

TEST(CoveringRows, OfOneFactorAreItsChoices) {
  EXPECT_EQ(covering_rows({3}), (std::vector<std::vector<int>>{{0}, {1}, {2}}));
  EXPECT_TRUE(covering_rows({}).empty());
}

}  // namespace
}  // namespace kvcheck::properties
