#include "reports/bench_curve.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

namespace kvcheck::reports {
namespace {

using Points = std::vector<std::pair<double, double>>;

Points sampled(double base, double slope, double shift) {
  Points points;
  for (const double period : {1., 5., 17., 33., 129., 257.}) {
    points.emplace_back(period, base + slope * period / 2 + shift / period);
  }
  return points;
}

TEST(CapacityCurve, FindsWhatTheTimesWereMadeOf) {
  const auto curve = fit_capacity_curve(sampled(.02, .0001, .02));
  ASSERT_TRUE(curve);
  EXPECT_NEAR(curve->base, .02, 1e-9);
  EXPECT_NEAR(curve->slope, .0001, 1e-12);
  EXPECT_NEAR(curve->shift, .02, 1e-9);
  ASSERT_TRUE(curve->optimum);
  EXPECT_NEAR(*curve->optimum, 20, 1e-6);  // sqrt(2 * 0.02 / 0.0001)
  EXPECT_NEAR(curve->at(20), .02 + .001 + .001, 1e-9);
}

TEST(CapacityCurve, TheOptimumIsTheLeastTime) {
  const auto curve = fit_capacity_curve(sampled(1, .003, .7));
  ASSERT_TRUE(curve && curve->optimum);
  const double best = curve->at(*curve->optimum);
  EXPECT_LT(best, curve->at(*curve->optimum * .9));
  EXPECT_LT(best, curve->at(*curve->optimum * 1.1));
}

TEST(CapacityCurve, HasNoOptimumWhereTimeDoesNotGrow) {
  const auto flat = fit_capacity_curve(sampled(.02, -.00001, .02));
  ASSERT_TRUE(flat);
  EXPECT_FALSE(flat->optimum);
  const auto no_moves = fit_capacity_curve(sampled(.02, .0001, -.001));
  ASSERT_TRUE(no_moves);
  EXPECT_FALSE(no_moves->optimum);
}

TEST(CapacityCurve, WantsFourPeriods) {
  Points points = sampled(.02, .0001, .02);
  points.resize(3);
  EXPECT_FALSE(fit_capacity_curve(points));
  points.push_back(points[0]);
  EXPECT_FALSE(fit_capacity_curve(points));
  points.emplace_back(0, 1);
  points.emplace_back(9, NAN);
  EXPECT_FALSE(fit_capacity_curve(points));
}

}  // namespace
}  // namespace kvcheck::reports
