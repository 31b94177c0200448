// Positions, tables and pairs of the rotary embedding, against numbers worked out by hand.
#include "model/rotary.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

namespace kvcheck::model {
namespace {

using Counts = std::vector<std::int64_t>;

Append asks(const Counts& tokens) { return {tokens, tokens, 0}; }

Scenario turning(std::vector<Step> steps, std::int64_t batch = 1) {
  Scenario s;
  s.batch = batch;
  s.rotary = RotarySpec{};
  s.steps = std::move(steps);
  EXPECT_TRUE(validate(s).empty());
  return s;
}

Scenario with_ids(Scenario s, PositionIds ids) {
  s.rotary->position_ids = ids;
  EXPECT_TRUE(validate(s).empty());
  return s;
}

/// Rotary positions of the first `count` tokens of an entry.
Counts positions(const Scenario& s, std::size_t step, std::int64_t entry, std::int64_t count) {
  const Timeline timeline(s);
  Counts out;
  for (std::int64_t i = 0; i < count; ++i) {
    out.push_back(rotary_position(s, timeline, step, entry, i));
  }
  return out;
}

bool first_prompt(const Scenario& s, std::size_t step) {
  return is_first_prompt(s, Timeline(s), step);
}

TEST(RotaryPosition, IsTheTokensOwnWithoutPositionIds) {
  const Scenario s =
      turning({asks({3, 2}), asks({1, 1}), Rollback{{1, 0}}, asks({2, 0}), asks({0, 3})}, 2);
  EXPECT_EQ(positions(s, 0, 1, 2), (Counts{0, 1}));
  EXPECT_EQ(positions(s, 1, 0, 1), (Counts{3}));
  EXPECT_EQ(positions(s, 1, 1, 1), (Counts{2}));
  EXPECT_EQ(positions(s, 3, 0, 2), (Counts{3, 4}));
  EXPECT_EQ(positions(s, 4, 1, 3), (Counts{3, 4, 5}));
}

TEST(RotaryPosition, OfAQueryWithoutTokensStandsAtTheEnd) {
  const Scenario s = turning({asks({5}), Append{{0}, {2}, 0}});
  EXPECT_EQ(positions(s, 1, 0, 2), (Counts{3, 4}));
}

TEST(RotaryPosition, IsAbsoluteUnderAWindowedCache) {
  Scenario s = turning({asks({5}), asks({4})});
  s.cache = {LayoutKind::block, 4, 3};
  EXPECT_EQ(positions(s, 1, 0, 4), (Counts{5, 6, 7, 8}));
}

TEST(RotaryPosition, OfAFirstPromptCountsUpFromElementZeroAlone) {
  const Scenario s = with_ids(turning({asks({4, 2})}, 2), {7, 3, 2});
  EXPECT_EQ(positions(s, 0, 0, 4), (Counts{7, 8, 9, 10}));
  EXPECT_EQ(positions(s, 0, 1, 2), (Counts{7, 8}));
}

TEST(RotaryPosition, LaterComesFromPositionIds) {
  const Scenario s = with_ids(turning({asks({4, 2}), asks({1, 1})}, 2), {7, 3, 0});
  EXPECT_EQ(positions(s, 1, 0, 1), (Counts{7 + 3 * 4}));
  EXPECT_EQ(positions(s, 1, 1, 1), (Counts{7 + 3 * 2}));
}

TEST(RotaryPosition, LaterReadsPositionIdsAsOneFlatList) {
  // Rows of two columns are read as if they had one: entry 1 gets the second column of entry 0,
  // entry 2 the first of entry 1.
  const Scenario s = with_ids(turning({asks({4, 2, 9}), asks({1, 1, 1})}, 3), {7, 3, 1});
  EXPECT_EQ(positions(s, 1, 0, 1), (Counts{7 + 3 * 4}));
  EXPECT_EQ(positions(s, 1, 1, 1), (Counts{7 + 3 * 5}));
  EXPECT_EQ(positions(s, 1, 2, 1), (Counts{7 + 3 * 2}));
}

TEST(RotaryPosition, LaterEqualsTheElementAtEntryTimesWidthPlusToken) {
  for (const std::int64_t extra : {0, 1, 2, 5}) {
    const Scenario s =
        with_ids(turning({Past{{2, 0, 5}}, asks({3, 1, 2}), asks({0, 4, 1})}, 3), {1, 2, extra});
    const Timeline timeline(s);
    for (const std::size_t step : {1u, 2u}) {
      Counts flat;
      for (const auto& row : position_ids(s, timeline, step)) {
        flat.insert(flat.end(), row.begin(), row.end());
      }
      const auto& tokens = std::get<Append>(s.steps[step]).tokens;
      const std::int64_t width = *std::max_element(tokens.begin(), tokens.end());
      for (std::int64_t b = 0; b < 3; ++b) {
        for (std::int64_t i = 0; i < tokens[static_cast<std::size_t>(b)]; ++i) {
          EXPECT_EQ(rotary_position(s, timeline, step, b, i),
                    flat[static_cast<std::size_t>(b * width + i)]);
        }
      }
    }
  }
}

TEST(FirstPrompt, NeedsTokensInEveryEntryAndNothingBehind) {
  EXPECT_TRUE(first_prompt(turning({asks({4, 2})}, 2), 0));
  EXPECT_FALSE(first_prompt(turning({asks({4, 0})}, 2), 0)) << "an idle entry";
  EXPECT_FALSE(first_prompt(turning({Past{{1}}, asks({4})}), 1));
  EXPECT_FALSE(first_prompt(turning({Past{{0, 1}}, asks({4, 4})}, 2), 1));
  EXPECT_FALSE(first_prompt(turning({asks({4}), asks({1})}), 1));
  EXPECT_FALSE(first_prompt(turning({asks({4, 0}), asks({0, 4})}, 2), 1));
}

TEST(FirstPrompt, ComesBackWhereEverythingWasRolledBack) {
  const Scenario s = turning({asks({4}), Rollback{{4}}, asks({2})});
  EXPECT_TRUE(first_prompt(s, 2));
  EXPECT_EQ(positions(with_ids(s, {5, 9, 0}), 2, 0, 2), (Counts{5, 6}));
}

TEST(FirstPrompt, IsAnyCallWithAsManyQueriesAsKeys) {
  // The operator compares the queries with the total length alone.
  EXPECT_TRUE(first_prompt(turning({Past{{3}}, Append{{0}, {3}, 0}}), 1));
  EXPECT_FALSE(first_prompt(turning({Past{{3}}, Append{{0}, {2}, 0}}), 1));
}

TEST(FirstPrompt, OfAWindowedCacheNeedsEqualEntries) {
  for (const LayoutKind layout : {LayoutKind::block, LayoutKind::ring}) {
    Scenario s = turning({asks({4, 2})}, 2);
    s.cache = {layout, 8, 4};
    EXPECT_FALSE(first_prompt(s, 0));
    s.steps = {asks({4, 4})};
    EXPECT_TRUE(first_prompt(s, 0));
  }
}

TEST(PositionIdsTensor, HasARowForEachEntryAsWideAsTheStep) {
  const Scenario s = with_ids(turning({asks({3, 1}), asks({1, 2})}, 2), {10, 2, 1});
  const Timeline timeline(s);
  EXPECT_EQ(position_ids(s, timeline, 0),
            (std::vector<Counts>{{10, 12, 14, 16}, {10, 12, 14, 16}}));
  EXPECT_EQ(position_ids(s, timeline, 1), (std::vector<Counts>{{16, 18, 20}, {12, 14, 16}}));
}

TEST(RotaryTable, HoldsCosAndSinOfPowersOfTenThousand) {
  Scenario s;  // Eight lanes: the angles are 1, 0.1, 0.01 and 0.001 times the position.
  s.rotary = RotarySpec{};
  const Rotary rotary(s);
  ASSERT_EQ(rotary.pairs(), 4);
  EXPECT_EQ(rotary.turn(1, 0).cos, static_cast<double>(0.54030230586813972F));
  EXPECT_EQ(rotary.turn(1, 0).sin, static_cast<double>(0.84147098480789651F));
  EXPECT_EQ(rotary.turn(3, 1).cos, static_cast<double>(0.95533648912560602F));
  EXPECT_EQ(rotary.turn(3, 1).sin, static_cast<double>(0.29552020666133957F));
  for (std::int64_t pair = 0; pair < 4; ++pair) {
    EXPECT_EQ(rotary.turn(0, pair).cos, 1);
    EXPECT_EQ(rotary.turn(0, pair).sin, 0);
    const long double angle = 12345.0L * powl(10.0L, static_cast<long double>(-pair));
    EXPECT_NEAR(rotary.turn(12345, pair).cos, static_cast<double>(cosl(angle)), 0x1p-24);
    EXPECT_NEAR(rotary.turn(12345, pair).sin, static_cast<double>(sinl(angle)), 0x1p-24);
  }
}

TEST(RotaryTable, IsRoundedToTheElementType) {
  Scenario s;
  s.element_type = ElementType::f16;
  s.rotary = RotarySpec{};
  // 0.9553365 in steps of 2^-11, 0.2955202 in steps of 2^-12.
  EXPECT_EQ(Rotary(s).turn(3, 1).cos, 1957.0 / 2048);
  EXPECT_EQ(Rotary(s).turn(3, 1).sin, 1210.0 / 4096);
}

TEST(RotaryTable, TakesItsAnglesFromTheLanesThatTurn) {
  Scenario s;
  s.rotary = RotarySpec{false, 4, {}};  // Two pairs: 1 and 0.01.
  const Rotary rotary(s);
  EXPECT_EQ(rotary_lanes(s), 4);
  ASSERT_EQ(rotary.pairs(), 2);
  EXPECT_EQ(rotary.turn(1, 1).sin, static_cast<double>(0.0099998333341666645F));
  s.rotary->dim = 0;
  EXPECT_EQ(rotary_lanes(s), 8);
}

TEST(RotaryPairs, AreHalfATurningPartApartOrNeighbours) {
  Scenario s;
  for (const auto& [interleaved, dim, a, b] : {std::tuple{false, 0, 1u, 5u},
                                               {true, 0, 2u, 3u},
                                               {false, 4, 1u, 3u},
                                               {true, 4, 2u, 3u},
                                               {false, 6, 1u, 4u}}) {
    s.rotary = RotarySpec{interleaved, dim, {}};
    EXPECT_EQ(Rotary(s).lanes(1).a, a);
    EXPECT_EQ(Rotary(s).lanes(1).b, b);
    s.rotary->interleaved = !interleaved;
    EXPECT_EQ(Rotary(s, true).lanes(1).a, a);
    EXPECT_EQ(Rotary(s, true).lanes(1).b, b);
  }
}

TEST(RotaryPairs, TakeEveryTurningLaneOnce) {
  Scenario s;
  for (const bool interleaved : {false, true}) {
    for (const std::int64_t dim : {2, 4, 6, 8}) {
      s.rotary = RotarySpec{interleaved, dim, {}};
      const Rotary rotary(s);
      std::multiset<std::size_t> lanes;
      for (std::int64_t pair = 0; pair < rotary.pairs(); ++pair) {
        lanes.insert({rotary.lanes(pair).a, rotary.lanes(pair).b});
      }
      std::multiset<std::size_t> every;
      for (std::int64_t lane = 0; lane < dim; ++lane) every.insert(static_cast<std::size_t>(lane));
      EXPECT_EQ(lanes, every);
    }
  }
}

TEST(RotaryRows, AreThoseOfTheLongestLengthWithoutPositionIds) {
  const Scenario s = turning({Past{{9, 1}}, Rollback{{7, 0}}, asks({3, 2})}, 2);
  EXPECT_EQ(rotary_rows(s, Timeline(s)), 9);
}

TEST(RotaryRows, ReachOneBeyondTheLargestNamedPosition) {
  const Scenario s = turning({asks({4}), asks({2})});
  const auto rows = [&](PositionIds ids) {
    const Scenario named = with_ids(s, ids);
    return rotary_rows(named, Timeline(named));
  };
  EXPECT_EQ(rows({0, 1, 0}), 6);
  EXPECT_EQ(rows({100, 1, 0}), 106);
  EXPECT_EQ(rows({0, 10, 0}), 51);  // Position 5.
  EXPECT_EQ(rows({0, 10, 2}), 71);  // Two columns more, read or not.
  EXPECT_EQ(rows({20, 0, 0}), 24);  // The first prompt counts up by one all the same.
  EXPECT_EQ(rows({0, 0, 0}), 6);    // The operator wants a row for each key.
}

TEST(RotaryRows, CoverEveryPositionThatAStepNamesOrReads) {
  for (const PositionIds ids : {PositionIds{}, {3, 0, 0}, {0, 5, 3}, {9, 2, 1}}) {
    const Scenario s =
        with_ids(turning({asks({2, 3}), asks({4, 0}), Rollback{{3, 1}}, asks({0, 5})}, 2), ids);
    const Timeline timeline(s);
    std::int64_t last = 0;
    for (const std::size_t step : {0u, 1u, 3u}) {
      for (const auto& row : position_ids(s, timeline, step)) {
        last = std::max(last, *std::max_element(row.begin(), row.end()));
      }
      const auto& tokens = std::get<Append>(s.steps[step]).tokens;
      for (std::int64_t b = 0; b < 2; ++b) {
        for (std::int64_t i = 0; i < tokens[static_cast<std::size_t>(b)]; ++i) {
          last = std::max(last, rotary_position(s, timeline, step, b, i));
        }
      }
    }
    EXPECT_GT(rotary_rows(s, timeline), last);
  }
}

}  // namespace
}  // namespace kvcheck::model
