// Facts about the fills whose values code positions.
#include <cstdint>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "model/fill.h"
#include "tests/model/fill_scenario.h"

namespace kvcheck::model {
namespace {

TEST(PositionFill, LogitsAreExactlyZero) {
  for (const FillKind kind :
       {FillKind::position_code, FillKind::position_block, FillKind::position_digits}) {
    const Scenario scenario = windowed(kind, {append(4)});
    const Timeline timeline(scenario);
    const Fill fill(scenario, timeline);
    for (std::int64_t lane = 0; lane < 16; ++lane) EXPECT_EQ(fill.query(0, 1, 3, 2, lane), 0);
  }
}

TEST(PositionFill, ValuesAreOneHotAtThePositionLane) {
  for (const FillKind kind : {FillKind::position_code, FillKind::position_block}) {
    for (const std::int64_t index : {0, 1, 2}) {
      Scenario scenario = windowed(kind, {append(4)});
      scenario.fill.index = index;
      const Timeline timeline(scenario);
      const Fill fill(scenario, timeline);
      for (std::int64_t position = 0; position < 300; ++position) {
        const std::int64_t lane = position_lane(scenario, 1, 1, {position});
        const bool dark = kind == FillKind::position_block && position / 16 != index;
        EXPECT_EQ(lane == -1, dark);
        for (std::int64_t c = 0; c < 16; ++c) {
          EXPECT_EQ(fill.value(1, 1, {{position}, 0}, c), c == lane ? 1.0 : 0.0);
        }
      }
    }
  }
}

TEST(PositionFill, DigitsTogetherNameThePosition) {
  Scenario scenario = windowed(FillKind::position_code, {append(4)});
  scenario.value_head_size = 5;
  std::set<std::vector<std::int64_t>> codes;
  for (std::int64_t position = 0; position < 125; ++position) {
    std::vector<std::int64_t> code;
    for (std::int64_t index = 0; index < 3; ++index) {
      scenario.fill.index = index;
      code.push_back(position_lane(scenario, 0, 0, {position}));
    }
    codes.insert(code);
  }
  EXPECT_EQ(codes.size(), 125u);
  scenario.fill.index = 2147483647;
  EXPECT_EQ(position_lane(scenario, 0, 0, {124}), 0);
}

TEST(PositionFill, DigitsAtOnceHaveLanesOfTheirOwn) {
  // 17 lanes: one digit of base 17, two of base 8, three of base 5, five of base 3.
  for (const auto& [digits, reach] : {std::pair{1, 17}, {2, 64}, {3, 125}, {5, 243}}) {
    Scenario scenario = windowed(FillKind::position_digits, {append(4)});
    scenario.head_size = scenario.value_head_size = 17;
    scenario.fill.index = digits;
    ASSERT_TRUE(validate(scenario).empty());
    const Timeline timeline(scenario);
    const Fill fill(scenario, timeline);
    const double shown = digit_value(scenario, 1, 1);
    EXPECT_EQ(shown, 4);
    std::vector<std::set<std::int64_t>> lanes_of(static_cast<std::size_t>(digits));
    std::set<std::vector<double>> codes;
    for (std::int64_t position = 0; position < reach; ++position) {
      std::vector<double> row(17), one_by_one;
      fill.value_row(1, 1, {{position}, 0}, row);
      for (std::int64_t c = 0; c < 17; ++c) {
        one_by_one.push_back(fill.value(1, 1, {{position}, 0}, c));
      }
      EXPECT_EQ(row, one_by_one);
      EXPECT_EQ(std::accumulate(row.begin(), row.end(), 0.0), digits * shown);
      codes.insert(row);
      for (std::int64_t d = 0; d < digits; ++d) {
        const std::int64_t lane = digit_lane(scenario, 1, 1, {position}, d);
        EXPECT_EQ(row[static_cast<std::size_t>(lane)], shown);
        lanes_of[static_cast<std::size_t>(d)].insert(lane);
      }
    }
    EXPECT_EQ(codes.size(), static_cast<std::size_t>(reach));
    std::set<std::int64_t> all;
    for (const auto& lanes : lanes_of) {
      EXPECT_EQ(lanes.size(), static_cast<std::size_t>(17 / digits));
      all.insert(lanes.begin(), lanes.end());
    }
    EXPECT_EQ(all.size(), static_cast<std::size_t>(17 / digits * digits));
    EXPECT_NE(digit_lane(scenario, 0, 0, {3}, 0), digit_lane(scenario, 0, 1, {3}, 0));
  }
}

TEST(PositionFill, DigitsHaveAnotherValueInEachHeadOfTheBatch) {
  Scenario scenario = windowed(FillKind::position_digits, {append(4)});
  scenario.batch = 2;
  scenario.query_heads = scenario.kv_heads = 3;
  std::vector<double> values;
  for (std::int64_t entry = 0; entry < 2; ++entry) {
    for (std::int64_t head = 0; head < 3; ++head) {
      values.push_back(digit_value(scenario, entry, head));
    }
  }
  EXPECT_EQ(values, (std::vector<double>{1, 2, 3, 4, 5, 6}));
  // The entry that another run has alone keeps its value; behind the last the first comes again.
  scenario.fill.first_entry = 1;
  EXPECT_EQ(digit_value(scenario, 0, 1), 5);
  EXPECT_EQ(digit_value(scenario, 1, 0), 1);
  // Codes of four bits would not reach 6.
  scenario.cache.quantisation.kind = QuantisationKind::int4;
  EXPECT_EQ(digit_value(scenario, 0, 1), 1);
}

TEST(PositionFill, OneLaneShowsABinaryDigit) {
  Scenario scenario = windowed(FillKind::position_code, {append(4)});
  scenario.value_head_size = 1;
  const Timeline timeline(scenario);
  // Of 1 to 9.
  const std::int64_t lit[3][9] = {
      {1, 0, 1, 0, 1, 0, 1, 0, 1}, {0, 1, 1, 0, 0, 1, 1, 0, 0}, {0, 0, 0, 1, 1, 1, 1, 0, 0}};
  for (std::int64_t index = 0; index < 3; ++index) {
    scenario.fill.index = index;
    const Fill fill(scenario, timeline);
    for (std::int64_t position = 0; position < 9; ++position) {
      EXPECT_EQ(position_lane(scenario, 1, 1, {position}), lit[index][position] - 1);
      EXPECT_EQ(fill.value(1, 1, {{position}, 0}, 0), lit[index][position]);
    }
  }
  scenario.fill.index = 2147483647;
  EXPECT_EQ(position_lane(scenario, 1, 1, {8}), -1);
}

TEST(PositionFill, HeadsAndEntriesAreRotatedAgainstEachOther) {
  for (const std::int64_t lanes : {4, 5, 6, 7, 8, 12, 16, 64}) {
    Scenario scenario = windowed(FillKind::position_code, {append(4)});
    scenario.value_head_size = lanes;
    std::set<std::int64_t> seen;
    for (std::int64_t entry = 0; entry < 2; ++entry) {
      for (std::int64_t head = 0; head < 2; ++head) {
        seen.insert(position_lane(scenario, entry, head, {3}));
      }
    }
    EXPECT_EQ(seen.size(), 4u) << lanes;
  }
}

}  // namespace
}  // namespace kvcheck::model
