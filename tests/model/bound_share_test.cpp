// The share of a target's bound that the same bound in double is at most, against that bound.
#include <algorithm>
#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "model/cheap_row.h"
#include "model/error_bound.h"
#include "tests/model/random_row.h"

namespace kvcheck::model {
namespace {

TEST(BoundShare, IsNotBelowWhatTheBoundInDoubleIs) {
  std::mt19937_64 random(5);
  double nearest = 0;
  int known = 0, unknown = 0;
  for (int i = 0; i < 20000; ++i) {
    const RandomRow given(random);
    CheapRow row(random_profile(random));
    row.evaluate(given.input, given.lanes);
    const double doubt = row.largest_doubt();
    if (std::isinf(doubt)) {
      ++unknown;
      continue;
    }
    ++known;
    EXPECT_LE(doubt, 1e-6) << "of single precision, double is a small part";
    for (std::size_t lane = 0; lane < given.lanes; ++lane) {
      const double uncertainty = row.uncertainty(lane);
      const double limit = row.bound(lane).total();
      ASSERT_LE(uncertainty, doubt * limit) << i << " " << lane;
      nearest = std::max(nearest, uncertainty / (doubt * limit));
    }
  }
  EXPECT_GT(known, 10000);
  EXPECT_GT(unknown, 100) << "rows whose bound is limited by the range of their values";
  EXPECT_GT(nearest, 0.1) << "a bound, not a guess far off";
}

TEST(BoundShare, IsUnknownWhereTheTargetHasNoSuchError) {
  ArithmeticProfile exact_exp;
  exact_exp.exp_error = 0;
  std::mt19937_64 random(6);
  const RandomRow given(random);
  CheapRow row(exact_exp);
  row.evaluate(given.input, given.lanes);
  EXPECT_TRUE(std::isinf(row.largest_doubt()));
}

TEST(BoundShare, OfDoubleItselfIsNotSmall) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 100; ++i) {
    const RandomRow given(random);
    CheapRow row(double_profile());
    row.evaluate(given.input, given.lanes);
    EXPECT_GE(row.largest_doubt(), 1);
  }
}

/// What rows before leave behind is what is known of other numbers of keys and lanes.
TEST(BoundShare, IsThatOfTheRowAtHand) {
  std::mt19937_64 random(8);
  CheapRow used{ArithmeticProfile{}};
  for (int i = 0; i < 500; ++i) {
    const RandomRow given(random);
    CheapRow fresh{ArithmeticProfile{}};
    used.evaluate(given.input, given.lanes);
    fresh.evaluate(given.input, given.lanes);
    EXPECT_EQ(used.largest_doubt(), fresh.largest_doubt());
    EXPECT_EQ(used.largest_doubt(), fresh.largest_doubt()) << "asked again";
    EXPECT_EQ(used.uncertainty(0), fresh.uncertainty(0));
  }
}

}  // namespace
}  // namespace kvcheck::model
