// A class is called met or unmet only where the cases leave no doubt.
#include "properties/coverage.h"

#include <gtest/gtest.h>

namespace kvcheck::properties {
namespace {

TEST(Coverage, TheIntervalIsWilsons) {
  // Worked by hand: 10 of 100 with z = 1.96, (0.1 + 0.019208) / 1.038416 +- 0.0605 ...
  const auto share = wilson_interval(10, 100, 1.96);
  EXPECT_NEAR(share.low, 0.05523, 1e-4);
  EXPECT_NEAR(share.high, 0.17437, 1e-4);
  EXPECT_EQ(wilson_interval(0, 0, 6).high, 1);
}

TEST(Coverage, FewCasesTellNothing) {
  EXPECT_EQ(coverage_status(0, 100, 0.01), "open");
  EXPECT_EQ(coverage_status(0, 1000, 0.01), "open");
}

TEST(Coverage, NeverReachedInALongRunIsUnmet) {
  // With no hit the upper end is z^2 / (n + z^2), 36 / (n + 36): under 0.01 from 3562 cases on.
  EXPECT_EQ(coverage_status(0, 3500, 0.01), "open");
  EXPECT_EQ(coverage_status(0, 3700, 0.01), "unmet");
}

TEST(Coverage, ReachedOftenIsMet) {
  EXPECT_EQ(coverage_status(400, 1000, 0.2), "met");
  // A little under what is required is tolerated; without doubt under it is not.
  EXPECT_EQ(coverage_status(191000, 1000000, 0.2), "met");
  EXPECT_EQ(coverage_status(170000, 1000000, 0.2), "unmet");
  EXPECT_EQ(coverage_status(0, 0, 0), "met");
}

TEST(Coverage, AFocusedRunIsAskedForNothing) {
  RunRecord record;
  CoverageRecord entry;
  entry.name = "one eviction";
  entry.drawn = 1000000;
  record.coverage = {entry};
  judge_coverage(record, true);
  EXPECT_EQ(record.coverage[0].status, "");
  judge_coverage(record, false);
  EXPECT_EQ(record.coverage[0].status, "unmet");
  EXPECT_GT(record.coverage[0].required, 0);
}

}  // namespace
}  // namespace kvcheck::properties
