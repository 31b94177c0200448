#include "kernels/bench/statistics.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

namespace kvcheck::kernels::bench {
namespace {

TEST(Statistics, QuartilesInterpolateBetweenOrderStatistics) {
  // R: quantile(c(4, 1, 3, 2), c(.1, .25, .5, .75)) = 1.3 1.75 2.5 3.25
  const Quartiles found = quartiles({4, 1, 3, 2});
  EXPECT_EQ(found.count, 4u);
  EXPECT_DOUBLE_EQ(found.p10, 1.3);
  EXPECT_DOUBLE_EQ(found.lower, 1.75);
  EXPECT_DOUBLE_EQ(found.median, 2.5);
  EXPECT_DOUBLE_EQ(found.upper, 3.25);
}

TEST(Statistics, OneValueIsEveryQuantile) {
  const Quartiles found = quartiles({7});
  EXPECT_EQ(found.p10, 7);
  EXPECT_EQ(found.median, 7);
  EXPECT_EQ(found.upper, 7);
}

TEST(Statistics, AnEmptySampleHasNone) {
  const Quartiles found = quartiles({});
  EXPECT_EQ(found.count, 0u);
  EXPECT_TRUE(std::isnan(found.median));
  EXPECT_FALSE(is_noisy(found));
}

TEST(Statistics, NoisyIsARangeAboveFifteenPercentOfTheMedian) {
  EXPECT_FALSE(is_noisy(quartiles({80, 92.5, 100, 107.5, 120})));
  EXPECT_TRUE(is_noisy(quartiles({80, 92.5, 100, 107.75, 120})));
}

TEST(Statistics, RatiosAreTakenPairByPair) {
  const std::vector<double> a = {6, 9}, b = {2, 6};
  EXPECT_EQ(ratios(a, b), (std::vector<double>{3, 1.5}));
}

}  // namespace
}  // namespace kvcheck::kernels::bench
