// Facts about the rational tier: which rows it takes, and that its verdicts are exact to the last
// bit.
#include "model/rational_row.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "model/oracle.h"

namespace kvcheck::model {
namespace {

struct Rows {
  std::vector<double> keys{0.5, -1};
  std::vector<std::vector<double>> values{{1, 4}, {2, 8}, {0.25, 16}};
  AttentionRowInput input(std::size_t count) {
    AttentionRowInput row;
    row.query = {0, 0};
    for (std::size_t j = 0; j < count; ++j) {
      row.keys.push_back(keys.data());
      row.values.push_back(values[j].data());
      row.biases.push_back(0);
    }
    return row;
  }
};

TEST(RationalRow, IsTheMeanOfEquallyWeightedValues) {
  Rows rows;
  EXPECT_EQ(*rational_output(rows.input(3), 0), Rational(13, 12));
  EXPECT_EQ(*rational_output(rows.input(3), 1), Rational(28, 3));
  EXPECT_EQ(*rational_output(rows.input(0), 0), Rational(0));
}

TEST(RationalRow, TakesOneKeyWhateverItsLogit) {
  Rows rows;
  AttentionRowInput row = rows.input(1);
  row.query = {3, 7};
  EXPECT_EQ(*rational_output(row, 1), Rational(4));
  row.sink = 0.0;
  EXPECT_FALSE(rational_output(row, 1));
}

TEST(RationalRow, CountsASinkOfTheSameLogit) {
  Rows rows;
  AttentionRowInput row = rows.input(2);
  row.sink = 0.0;
  EXPECT_EQ(*rational_output(row, 1), Rational(4));
  row.sink = 0.5;
  EXPECT_FALSE(rational_output(row, 1));
  row.biases = {0.5, 0.5};
  EXPECT_EQ(*rational_output(row, 1), Rational(4));
}

TEST(RationalRow, LeavesRowsOfUnequalLogits) {
  Rows rows;
  AttentionRowInput row = rows.input(2);
  row.biases = {0, 1};
  EXPECT_FALSE(rational_output(row, 0));
  row = rows.input(2);
  row.query = {0, 1};
  EXPECT_FALSE(rational_output(row, 0));
  row = rows.input(2);
  row.query_low = {0, 1e-20};
  EXPECT_FALSE(rational_output(row, 0));
}

/// Thirds are no binary fractions: the verdict at the very limit needs the rational.
TEST(RationalRow, DecidesAtTheLimitToTheLastBit) {
  Scenario s;
  s.head_size = s.value_head_size = 1;
  s.fill.kind = FillKind::position_block;  // Position 0 has the value 1, the others 0.
  s.steps = {Append{{3}, {3}, 0}};
  Oracle oracle(s, {});
  const double limit = oracle.expected(0).bound[2];
  const Rational third(1, 3);
  double observed = 1.0 / 3 + limit;
  int inside = 0, outside = 0;
  for (int i = -40; i <= 40; ++i) {
    double near = observed;
    for (int n = 0; n < std::abs(i); ++n) near = std::nextafter(near, i < 0 ? -1.0 : 1.0);
    const bool fails = Rational(near) - third > Rational(limit);
    EXPECT_EQ(oracle.bound_ratio(0, 0, 2, 0, 0, near) > 1, fails) << i;
    (fails ? outside : inside) += 1;
  }
  EXPECT_GT(inside, 10);
  EXPECT_GT(outside, 10);
}

}  // namespace
}  // namespace kvcheck::model
