// Facts about the position-bound attn_mask.
#include "model/mask.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "model/counter_hash.h"

namespace kvcheck::model {
namespace {

Scenario masked(MaskKind kind, int rank) {
  Scenario scenario;
  scenario.op = Operator::attention;
  scenario.opset = 24;
  scenario.batch = 2;
  scenario.query_heads = 2;
  scenario.kv_heads = 2;
  scenario.mask.kind = kind;
  scenario.mask.rank = rank;
  scenario.mask.seed = 5;
  return scenario;
}

/// The hidden pairs of a square of positions around zero, as one string.
std::string picture(const Scenario& scenario, std::int64_t entry, std::int64_t head) {
  std::string text;
  for (std::int64_t query = -20; query < 60; ++query) {
    for (std::int64_t key = 0; key < 60; ++key) {
      text += mask_hides(scenario, entry, head, {query}, {key}) ? '#' : '.';
    }
  }
  return text;
}

double share(const std::string& text) {
  return static_cast<double>(std::count(text.begin(), text.end(), '#')) /
         static_cast<double>(text.size());
}

TEST(Mask, NoneHidesNothingAndAddsNothing) {
  Scenario scenario = masked(MaskKind::none, 4);
  scenario.mask.hidden_percent = 100;
  EXPECT_EQ(share(picture(scenario, 0, 0)), 0);
  EXPECT_EQ(mask_bias(scenario, 0, 0, {3}, {2}), 0);
}

/// Stored cases keep their masks: the cells of seed 5 as the hash of their coordinates.
TEST(Mask, CellsAreHashesOfTheirCoordinates) {
  Scenario scenario = masked(MaskKind::additive, 4);
  scenario.mask.hidden_percent = 30;
  scenario.steps = {Append{{7, 7}, {7, 7}, 0}};
  const Timeline timeline(scenario);
  for (const bool empty_rows : {false, true}) {
    scenario.mask.empty_rows = empty_rows;
    for (std::int64_t entry = 0; entry < 2; ++entry) {
      for (std::int64_t head = 0; head < 2; ++head) {
        const auto plane = [&](int purpose) { return counter_hash(5, purpose, entry, head); };
        for (std::int64_t query = 0; query < 7; ++query) {
          const bool hidden_row = empty_rows && counter_hash(plane(2), query) % 4 == 0;
          for (std::int64_t key = 0; key < 7; ++key) {
            const bool hidden = hidden_row || counter_hash(plane(1), query, key) % 100 < 30;
            const MaskCell cell = mask_cell(scenario, timeline, 0, entry, head, query, {key});
            ASSERT_EQ(cell.hides, hidden) << query << ' ' << key;
            const MaskRow row(scenario, timeline, 0, entry, head, query);
            EXPECT_EQ(row.hides({key}), hidden);
            EXPECT_EQ(mask_hides(scenario, entry, head, {query}, {key}), hidden);
            const auto step = static_cast<std::int64_t>(counter_hash(plane(3), query, key) % 129);
            EXPECT_EQ(cell.bias, hidden ? 0 : static_cast<double>(step - 64) / 32);
          }
        }
      }
    }
  }
}

TEST(Mask, HidesTheAskedShareOfPairs) {
  for (const int percent : {0, 10, 30, 75, 100}) {
    Scenario scenario = masked(MaskKind::boolean, 2);
    scenario.mask.hidden_percent = percent;
    EXPECT_NEAR(share(picture(scenario, 0, 0)), percent / 100.0, 0.025);
  }
}

TEST(Mask, RankSaysWhetherEntriesAndHeadsDiffer) {
  for (const int rank : {2, 3, 4}) {
    const Scenario scenario = masked(MaskKind::boolean, rank);
    const std::string first = picture(scenario, 0, 0);
    EXPECT_EQ(first != picture(scenario, 0, 1), rank >= 3) << rank;
    EXPECT_EQ(first != picture(scenario, 1, 0), rank >= 4) << rank;
  }
}

TEST(Mask, BiasFollowsTheRankToo) {
  for (const int rank : {2, 3, 4}) {
    const Scenario scenario = masked(MaskKind::additive, rank);
    std::int64_t heads = 0;
    std::int64_t entries = 0;
    for (std::int64_t key = 0; key < 50; ++key) {
      const double bias = mask_bias(scenario, 0, 0, {9}, {key});
      heads += bias != mask_bias(scenario, 0, 1, {9}, {key}) ? 1 : 0;
      entries += bias != mask_bias(scenario, 1, 0, {9}, {key}) ? 1 : 0;
    }
    EXPECT_EQ(heads > 40, rank >= 3);
    EXPECT_EQ(entries > 40, rank >= 4);
    EXPECT_EQ(heads == 0, rank < 3);
    EXPECT_EQ(entries == 0, rank < 4);
  }
}

TEST(Mask, FirstEntrySelectsThePictureOfALaterEntry) {
  for (const int rank : {2, 3, 4}) {
    Scenario scenario = masked(MaskKind::boolean, rank);
    const std::string second = picture(scenario, 1, 0);
    scenario.fill.first_entry = 1;
    EXPECT_EQ(second, picture(scenario, 0, 0));
  }
}

TEST(Mask, SeedChangesThePicture) {
  Scenario scenario = masked(MaskKind::boolean, 2);
  const std::string first = picture(scenario, 0, 0);
  scenario.mask.seed = 6;
  EXPECT_NE(first, picture(scenario, 0, 0));
}

TEST(Mask, EmptyRowsHidesAboutOneQueryInFourWhole) {
  Scenario scenario = masked(MaskKind::additive, 2);
  const auto empty_rows = [&] {
    int count = 0;
    for (std::int64_t query = -100; query < 300; ++query) {
      int hidden = 0;
      for (std::int64_t key = 0; key < 40; ++key) {
        hidden += mask_hides(scenario, 0, 0, {query}, {key}) ? 1 : 0;
      }
      count += hidden == 40 ? 1 : 0;
    }
    return count;
  };
  EXPECT_EQ(empty_rows(), 0);
  scenario.mask.empty_rows = true;
  EXPECT_NEAR(empty_rows(), 100, 30);
}

TEST(Mask, BiasIsSmallRepresentableAndVaried) {
  for (const auto type :
       {ElementType::f32, ElementType::f16, ElementType::bf16, ElementType::f64}) {
    Scenario scenario = masked(MaskKind::additive, 2);
    scenario.element_type = type;
    std::set<double> seen;
    for (std::int64_t query = -10; query < 50; ++query) {
      for (std::int64_t key = 0; key < 50; ++key) {
        const double bias = mask_bias(scenario, 0, 0, {query}, {key});
        EXPECT_LE(std::abs(bias), 2.0);
        EXPECT_EQ(round_to(type, bias), bias);
        seen.insert(bias);
      }
    }
    EXPECT_EQ(seen.size(), 129u);
  }
}

TEST(Mask, BiasIsZeroForBooleanMasksAndUnderPositionFills) {
  EXPECT_EQ(mask_bias(masked(MaskKind::boolean, 2), 0, 0, {5}, {4}), 0);
  for (const auto fill :
       {FillKind::position_code, FillKind::position_block, FillKind::position_digits}) {
    Scenario scenario = masked(MaskKind::additive, 2);
    scenario.fill.kind = fill;
    for (std::int64_t key = 0; key < 50; ++key) {
      EXPECT_EQ(mask_bias(scenario, 0, 0, {5}, {key}), 0);
    }
  }
}

}  // namespace
}  // namespace kvcheck::model
