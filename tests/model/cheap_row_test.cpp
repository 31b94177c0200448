// Facts about the cheap tier: a row is what it is, whatever rows came before.
#include "model/cheap_row.h"

#include <functional>
#include <random>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/model/random_row.h"

namespace kvcheck::model {
namespace {

/// Two keys of two lanes, and all that a row may have besides.
struct Given {
  std::vector<double> keys[2] = {{1, 2}, {-1, 0.5}};
  std::vector<double> values[2] = {{3, 4}, {5, -6}};
  std::vector<double> doubts{0.25, 0.5};
  AttentionRowInput input;

  Given() {
    input.query = {0.5, 0.25};
    input.biases = {0, 0};
    for (const auto& key : keys) input.keys.push_back(key.data());
    for (const auto& value : values) input.values.push_back(value.data());
  }
};

void expect_same(CheapRow& a, CheapRow& b, std::size_t change) {
  for (std::size_t lane = 0; lane < 2; ++lane) {
    EXPECT_EQ(a.output(lane), b.output(lane)) << change;
    EXPECT_EQ(a.bound(lane).total(), b.bound(lane).total()) << change;
    EXPECT_EQ(a.uncertainty(lane), b.uncertainty(lane)) << change;
  }
  ASSERT_EQ(a.terms().size(), b.terms().size()) << change;
  for (std::size_t j = 0; j < a.terms().size(); ++j) {
    EXPECT_EQ(a.terms()[j].weight, b.terms()[j].weight) << change;
    EXPECT_EQ(a.terms()[j].operand_error, b.terms()[j].operand_error) << change;
  }
}

TEST(CheapRow, RowsBeforeLeaveNoTrace) {
  const std::vector<double> other{7, 8};
  const std::function<void(Given&)> changes[] = {
      [](Given&) {},
      [&](Given& given) { given.input.values[1] = other.data(); },
      [&](Given& given) { given.input.keys[1] = other.data(); },
      [](Given& given) {
        given.input.query = {0, 0};
      },
      [](Given& given) {
        given.input.biases = {0, 1};
      },
      [](Given& given) { given.input.sink = 0; },
      [](Given& given) { given.input.sink = 2; },
      [](Given& given) { given.input.softcap = 3; },
      [](Given& given) { given.input.scale = 2; },
      [](Given& given) { given.input.query_doubts = given.doubts; },
      [](Given& given) {
        given.input.key_doubts = {given.doubts.data(), nullptr};
      },
      [](Given& given) {
        given.input.value_doubts = {nullptr, given.doubts.data()};
      },
      [](Given& given) {
        given.input.keys.pop_back();
        given.input.values.pop_back();
        given.input.biases.pop_back();
      },
      [](Given& given) {  // The magnitude alone is another.
        given.keys[0] = {1, -2};
        given.keys[1] = {-1, 2};
        given.input.query = {2, 1};
      },
      [](Given& given) {
        given.keys[0] = {3, -6};
        given.keys[1] = {-3, 6};
        given.input.query = {2, 1};
      },
  };
  ArithmeticProfile profile;
  profile.max_rescales = 4;
  CheapRow used(profile);
  const std::size_t count = std::size(changes);
  // Every change after every other, and each twice in a row.
  for (std::size_t i = 0; i < count * count; ++i) {
    for (const std::size_t change : {i / count, i % count, i % count}) {
      Given given;
      changes[change](given);
      CheapRow fresh(profile);
      used.evaluate(given.input, 2);
      fresh.evaluate(given.input, 2);
      expect_same(used, fresh, change);
    }
  }
}

/// All lanes at once, in a loop of its own where nothing is out of the ordinary.
TEST(CheapRow, BoundsAreThoseOfEveryLane) {
  std::mt19937_64 random(4);
  int plain = 0;
  for (int i = 0; i < 5000; ++i) {
    const RandomRow given(random);
    CheapRow row(random_profile(random));
    row.evaluate(given.input, given.lanes);
    std::vector<double> bounds(given.lanes);
    row.bounds(bounds);
    for (std::size_t lane = 0; lane < given.lanes; ++lane) {
      EXPECT_EQ(bounds[lane], row.bound(lane).total()) << i;
    }
    plain += row.bound().is_plain() ? 1 : 0;
  }
  EXPECT_GT(plain, 2500);
  EXPECT_LT(plain, 5000);
}

TEST(CheapRow, SaysWhetherAnythingIsNew) {
  Given given;
  CheapRow row{ArithmeticProfile{}};
  EXPECT_TRUE(row.evaluate(given.input, 2));
  EXPECT_FALSE(row.evaluate(given.input, 2));
  EXPECT_TRUE(row.evaluate(given.input, 1));
  EXPECT_TRUE(row.evaluate(given.input, 2));
  std::swap(given.input.values[0], given.input.values[1]);
  EXPECT_TRUE(row.evaluate(given.input, 2));
  given.input.value_doubts = {nullptr, given.doubts.data()};
  EXPECT_TRUE(row.evaluate(given.input, 2));
  EXPECT_FALSE(row.evaluate(given.input, 2));
  given.values[0] = {30, 40};
  given.input.values[0] = given.values[0].data();
  row.forget_values();
  EXPECT_TRUE(row.evaluate(given.input, 2));
  CheapRow fresh{ArithmeticProfile{}};
  fresh.evaluate(given.input, 2);
  expect_same(row, fresh, 0);
}

}  // namespace
}  // namespace kvcheck::model
