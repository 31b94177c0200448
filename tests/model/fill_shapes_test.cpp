// Facts about the shaped fills and about selection.
#include "model/fill_shapes.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "model/fill.h"
#include "model/oracle.h"
#include "model/scenario_json.h"

namespace kvcheck::model {
namespace {

/// One prompt of `tokens` tokens, wide enough that noise does not decide.
Scenario prompt(FillKind kind, std::int64_t tokens, std::uint64_t seed = 3) {
  Scenario s;
  s.query_heads = 4;
  s.kv_heads = 2;
  s.head_size = s.value_head_size = 16;
  s.fill = {kind, seed};
  s.steps = {Append{{tokens}, {tokens}, 0}};
  return s;
}

Scenario prompt(ExtremeShape shape, std::int64_t tokens) {
  Scenario s = prompt(FillKind::extreme, tokens);
  while (extreme_shape(s) != shape) ++s.fill.seed;
  return s;
}

/// Logits of query `query` over keys 0..query, head 0.
std::vector<double> logits(const Scenario& s, std::int64_t query) {
  const Timeline timeline(s);
  const Fill fill(s, timeline);
  std::vector<double> found;
  for (std::int64_t key = 0; key <= query; ++key) {
    double dot = 0;
    for (std::int64_t lane = 0; lane < s.head_size; ++lane) {
      dot += fill.query(0, 0, 0, query, lane) * fill.key(0, 0, {{key}, 0}, lane);
    }
    found.push_back(dot / std::sqrt(static_cast<double>(s.head_size)));
  }
  return found;
}

TEST(FillShapes, AscendingLogitsRaiseTheMaximumAllTheTimeAndDescendingOnesNever) {
  const auto up = logits(prompt(ExtremeShape::ascending, 200), 199);
  const auto down = logits(prompt(ExtremeShape::descending, 200), 199);
  for (std::size_t block = 16; block + 16 <= up.size(); block += 16) {
    EXPECT_GT(*std::max_element(up.begin() + static_cast<std::ptrdiff_t>(block),
                                up.begin() + static_cast<std::ptrdiff_t>(block) + 16),
              *std::max_element(up.begin(), up.begin() + static_cast<std::ptrdiff_t>(block)))
        << block;
  }
  EXPECT_LT(std::max_element(down.begin(), down.end()) - down.begin(), 16);
}

TEST(FillShapes, FarLogitsLieBelowFiniteSentinelsAndHighOnesAboveExp) {
  for (const double logit : logits(prompt(ExtremeShape::far_below, 40), 39)) {
    EXPECT_LT(logit, -5e4);
  }
  for (const double logit : logits(prompt(ExtremeShape::above_exp, 40), 39)) {
    EXPECT_GT(logit, std::log(std::numeric_limits<float>::max()));
    EXPECT_LT(logit, 120);
  }
  const auto spread = logits(prompt(ExtremeShape::spread, 200), 199);
  EXPECT_GT(*std::max_element(spread.begin(), spread.end()), 88);
  EXPECT_LT(*std::min_element(spread.begin(), spread.end()), -1e4);
}

TEST(FillShapes, EverySeedHasAShapeAndAllShapesAreMet) {
  std::set<ExtremeShape> shapes;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    shapes.insert(extreme_shape(prompt(FillKind::extreme, 1, seed)));
  }
  EXPECT_EQ(shapes.size(), 6u);
}

TEST(FillShapes, HugeValuesLeaveRoomForTheirSum) {
  for (const ElementType type : {ElementType::f32, ElementType::f16, ElementType::bf16}) {
    Scenario s = prompt(ExtremeShape::huge_values, 4);
    s.element_type = type;
    const Timeline timeline(s);
    const Fill fill(s, timeline);
    for (std::int64_t lane = 0; lane < 16; ++lane) {
      const double value = std::abs(fill.value(0, 0, {{2}, 0}, lane));
      EXPECT_LE(value, largest_finite(type));
      if (type == ElementType::f16) {
        EXPECT_GE(value, 49152);
      } else {
        EXPECT_GE(value, 0x1p112);
        EXPECT_LE(value * 32768, largest_finite(type));
      }
    }
  }
}

TEST(FillShapes, TiesAreEqualLogitsThatAreNotZero) {
  for (const std::int64_t query : {0, 1, 39}) {
    const auto found = logits(prompt(FillKind::ties, 40), query);
    EXPECT_EQ(std::set<double>(found.begin(), found.end()).size(), 1u);
    EXPECT_GT(std::abs(found.front()), 0.1);
  }
}

TEST(FillShapes, CancellingValuesLeaveFarLessThanTheirTerms) {
  const Scenario s = prompt(FillKind::cancelling, 40);
  Oracle oracle(s, {});
  const auto& expected = oracle.expected(0);
  const auto output = [&](std::int64_t query) {
    return std::abs(expected.output[element_index(s, expected, 0, query, 0, 5)]);
  };
  EXPECT_LT(output(39), 0.05);  // 20 whole pairs.
  EXPECT_GT(output(0), 1000);   // One key alone.
  EXPECT_GT(output(39), 0);
}

TEST(FillShapes, IntegersAreSmallAndExact) {
  const Scenario s = prompt(FillKind::integers, 40);
  const Timeline timeline(s);
  const Fill fill(s, timeline);
  std::set<double> keys, values, queries;
  for (std::int64_t position = 0; position < 40; ++position) {
    for (std::int64_t lane = 0; lane < 16; ++lane) {
      keys.insert(fill.key(0, 0, {{position}, 0}, lane));
      values.insert(4 * fill.value(0, 0, {{position}, 0}, lane));
      queries.insert(fill.query(0, 0, 0, position, lane));
    }
  }
  EXPECT_EQ(queries, (std::set<double>{-1, 0, 1}));
  EXPECT_EQ(keys.size(), 9u);
  EXPECT_EQ(*keys.rbegin(), 4);
  EXPECT_EQ(values.size(), 33u);
  EXPECT_EQ(*values.begin(), -16);
}

TEST(FillShapes, ASelectedKeyIsTheNewestTheOldestOrTheMiddleOneAndWinsByFar) {
  Scenario s = prompt(FillKind::selection, 60);
  s.head_size = s.value_head_size = 64;
  Oracle oracle(s, {});
  const auto& expected = oracle.expected(0);
  std::map<std::int64_t, int> selected;
  for (std::int64_t query = 30; query < 60; ++query) {
    for (const std::int64_t key : {std::int64_t{0}, (query + 1) / 2, query}) {
      bool is_value = true;
      for (std::int64_t lane = 0; lane < 64; ++lane) {
        const auto at = element_index(s, expected, 0, query, 0, lane);
        is_value = is_value && std::abs(expected.output[at] -
                                        oracle.fill().value(0, 0, {{key}, 0}, lane)) < 1e-6;
      }
      if (is_value) ++selected[key == 0 ? 0 : key == query ? 2 : 1];
    }
  }
  EXPECT_EQ(selected[0] + selected[1] + selected[2], 30);
  EXPECT_EQ(selected.size(), 3u);
}

TEST(FillShapes, AreKeptByTheTextFormAndByRepair) {
  for (const FillKind kind : {FillKind::extreme, FillKind::ties, FillKind::cancelling,
                              FillKind::selection, FillKind::integers}) {
    const Scenario s = prompt(kind, 4);
    EXPECT_TRUE(validate(s).empty());
    EXPECT_EQ(parse_scenario(canonical_text(s)).fill, s.fill);
    EXPECT_EQ(normalise(s).fill, s.fill);
  }
}

/// Share of outputs whose bound is less than a tenth of the largest value of the lane: there a
/// wrong key shows.
double meaningful(Scenario s, ElementType type, double logit_roundoff) {
  s.element_type = type;
  ArithmeticProfile profile;
  profile.output_type = type;
  profile.logit_roundoff = logit_roundoff;
  Oracle oracle(s, profile);
  const auto& expected = oracle.expected(0);
  double largest = 0;
  for (std::int64_t key = 0; key < 48; ++key) {
    largest = std::max(largest, std::abs(oracle.fill().value(0, 0, {{key}, 0}, 3)));
  }
  double good = 0;
  for (const double bound : expected.bound) good += bound < 0.1 * largest ? 1 : 0;
  return good / static_cast<double>(expected.bound.size());
}

TEST(FillShapes, TheBoundStaysMeaningful) {
  for (const ElementType type : {ElementType::f32, ElementType::f16, ElementType::bf16}) {
    for (const FillKind kind :
         {FillKind::ties, FillKind::cancelling, FillKind::selection, FillKind::integers}) {
      EXPECT_GE(meaningful(prompt(kind, 48), type, 0), 0.95)
          << to_string(kind) << ' ' << to_string(type);
    }
    for (int shape = 0; shape < 6; ++shape) {
      EXPECT_GE(meaningful(prompt(static_cast<ExtremeShape>(shape), 48), type, 0), 0.95)
          << "shape " << shape << ' ' << to_string(type);
    }
  }
}

TEST(FillShapes, LogitsThatAreStoredInSixteenBitsLeaveTheFarOnesUnjudged) {
  const double f16 = unit_roundoff(ElementType::f16);
  EXPECT_GE(meaningful(prompt(ExtremeShape::above_exp, 48), ElementType::f16, f16), 0.5);
  EXPECT_LE(meaningful(prompt(ExtremeShape::far_below, 48), ElementType::f16, f16), 0.1);
}

}  // namespace
}  // namespace kvcheck::model
