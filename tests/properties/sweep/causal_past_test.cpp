// The counts of thread 34226, counted from the scenarios themselves.
#include <map>
#include <set>
#include <tuple>

#include <gtest/gtest.h>

#include "model/mask.h"
#include "properties/sweep/grid.h"

namespace kvcheck::properties {
namespace {

using model::MaskKind;
using model::Scenario;

const Grid& grid() { return *find_grid("causal-past"); }

const model::Append& step_of(const Scenario& s) { return std::get<model::Append>(s.steps.back()); }

std::int64_t past_of(const Scenario& s) {
  const auto* past = std::get_if<model::Past>(&s.steps.front());
  return past ? past->tokens.front() : 0;
}

std::int64_t queries_of(const Scenario& s) { return step_of(s).queries.front(); }
std::int64_t tokens_of(const Scenario& s) { return step_of(s).tokens.front(); }

/// The cell that the thread calls affected.
bool affected(const Scenario& s) {
  return s.causal && past_of(s) > 0 && queries_of(s) == 1 && tokens_of(s) >= 2;
}

TEST(CausalPast, HasTheTwoCountsOfTheThread) {
  // 3 query counts, 4 new key counts, 3 pasts, causal or not; opsets, batches, head counts; masks;
  // variations.
  ASSERT_EQ(grid().count, (3 * 4 * 3 * 2) * (2 * 2 * 2) * 8 * 11);
  ASSERT_EQ(grid().count, 50688);
  std::int64_t in_cell = 0;
  for (std::int64_t i = 0; i < grid().count; ++i) in_cell += affected(grid().at(i).scenario);
  // 2 pasts, 3 new key counts.
  EXPECT_EQ(in_cell, (2 * 3) * (2 * 2 * 2) * 8 * 11);
  EXPECT_EQ(in_cell, 4224);
}

TEST(CausalPast, EveryAxisTakesEachOfItsValuesEquallyOften) {
  std::map<int, std::int64_t> opsets;
  std::map<std::int64_t, std::int64_t> batches, heads, queries, tokens, pasts;
  std::map<std::tuple<MaskKind, int, bool>, std::int64_t> masks;
  for (std::int64_t i = 0; i < grid().count; ++i) {
    const Scenario s = grid().at(i).scenario;
    ++opsets[s.opset];
    ++batches[s.batch];
    ++heads[s.query_heads / s.kv_heads];
    ++queries[queries_of(s)];
    ++tokens[tokens_of(s)];
    ++pasts[past_of(s)];
    ++masks[{s.mask.kind, s.mask.kind == MaskKind::none ? 0 : s.mask.rank, s.mask.empty_rows}];
  }
  EXPECT_EQ(opsets, (std::map<int, std::int64_t>{{23, 25344}, {24, 25344}}));
  EXPECT_EQ(batches, (std::map<std::int64_t, std::int64_t>{{1, 25344}, {2, 25344}}));
  EXPECT_EQ(heads, (std::map<std::int64_t, std::int64_t>{{1, 25344}, {2, 25344}}));
  EXPECT_EQ(queries, (std::map<std::int64_t, std::int64_t>{{1, 16896}, {2, 16896}, {3, 16896}}));
  EXPECT_EQ(tokens,
            (std::map<std::int64_t, std::int64_t>{{1, 12672}, {2, 12672}, {3, 12672}, {4, 12672}}));
  EXPECT_EQ(pasts, (std::map<std::int64_t, std::int64_t>{{0, 16896}, {1, 16896}, {3, 16896}}));
  ASSERT_EQ(masks.size(), 8u);
  for (const auto& [mask, count] : masks) EXPECT_EQ(count, 6336);
  for (const int rank : {2, 3, 4}) {
    for (const bool empty_rows : {false, true}) {
      EXPECT_EQ(masks.count({MaskKind::boolean, rank, empty_rows}), 1u);
    }
  }
}

/// Input rank, softcap, element type, scale, intermediate.
std::array<int, 5> settings(const Scenario& s) {
  return {s.input_rank, s.softcap > 0, static_cast<int>(s.element_type), s.scale.has_value(),
          static_cast<int>(s.qk_output)};
}

TEST(CausalPast, TheVariationsHoldEveryPairOfSettings) {
  std::set<std::array<int, 5>> variations;
  for (std::int64_t i = 0; i < grid().count; i += 288) {
    variations.insert(settings(grid().at(i).scenario));
  }
  ASSERT_EQ(variations.size(), 11u);
  for (std::size_t a = 0; a < 5; ++a) {
    for (std::size_t b = a + 1; b < 5; ++b) {
      std::set<std::pair<int, int>> pairs;
      for (const auto& v : variations) pairs.insert({v[a], v[b]});
      EXPECT_EQ(pairs.size(), b == 4 ? 10u : 4u) << a << " " << b;
    }
  }
}

/// Rows of the mask tensor, and how many of them are hidden whole.
std::pair<std::int64_t, std::int64_t> rows_of(const Scenario& s) {
  std::int64_t rows = 0, hidden = 0;
  for (std::int64_t b = 0; b < (s.mask.rank == 4 ? s.batch : 1); ++b) {
    for (std::int64_t h = 0; h < (s.mask.rank >= 3 ? s.query_heads : 1); ++h) {
      for (std::int64_t i = 0; i < queries_of(s); ++i, ++rows) {
        bool open = false;
        for (std::int64_t j = 0; j < past_of(s) + tokens_of(s); ++j) {
          open = open || !model::mask_hides(s, b, h, {past_of(s) + i}, {j});
        }
        hidden += open ? 0 : 1;
      }
    }
  }
  return {rows, hidden};
}

TEST(CausalPast, NoMaskHidesTheKeyThatTheThreadIsAbout) {
  for (std::int64_t i = 0; i < grid().count; ++i) {
    const Scenario s = grid().at(i).scenario;
    if (!affected(s)) continue;
    const std::int64_t newest = past_of(s) + tokens_of(s) - 1;
    bool open = false;
    for (std::int64_t b = 0; b < s.batch; ++b) {
      for (std::int64_t h = 0; h < s.query_heads; ++h) {
        open = open || !model::mask_hides(s, b, h, {past_of(s)}, {newest});
      }
    }
    ASSERT_TRUE(open) << i;
  }
}

TEST(CausalPast, MasksThatAreToHideWholeRowsDo) {
  for (std::int64_t i = 0; i < grid().count; i += 5) {
    const Scenario s = grid().at(i).scenario;
    if (!s.mask.empty_rows) continue;
    const auto [rows, hidden] = rows_of(s);
    ASSERT_TRUE(hidden > 0 || rows == 1) << i;
    ASSERT_LT(hidden, rows) << i;
  }
}

TEST(CausalPast, PlacesAreThoseOfTheScenario) {
  for (std::int64_t i = 0; i < grid().count; i += 11) {
    const auto [s, at] = grid().at(i);
    const auto value = [&](std::size_t a) {
      return grid().axes[a].values[static_cast<std::size_t>(at[a])];
    };
    ASSERT_EQ(value(0), std::to_string(s.opset));
    ASSERT_EQ(value(1), std::to_string(s.batch));
    ASSERT_EQ(value(2), s.query_heads == 2 ? "2 of 2" : "4 on 2");
    ASSERT_EQ(value(3), std::to_string(queries_of(s)));
    ASSERT_EQ(value(4), std::to_string(tokens_of(s)));
    ASSERT_EQ(value(5), std::to_string(past_of(s)));
    ASSERT_EQ(value(6), s.causal ? "1" : "0");
    ASSERT_EQ(value(8), std::to_string(s.input_rank));
    ASSERT_EQ(value(9), s.softcap > 0 ? "2" : "off");
    ASSERT_EQ(value(10), s.element_type == model::ElementType::f16 ? "f16" : "f32");
    ASSERT_EQ(value(11), s.scale ? "0.3125" : "default");
    ASSERT_EQ(value(12), model::to_string(s.qk_output));
  }
}

}  // namespace
}  // namespace kvcheck::properties
