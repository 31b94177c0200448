// Facts about the data fills.
#include "model/fill.h"

#include <array>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "model/visibility.h"
#include "tests/model/fill_scenario.h"

namespace kvcheck::model {
namespace {

constexpr std::array kFills{FillKind::random,         FillKind::needles,   FillKind::position_code,
                            FillKind::position_block, FillKind::extreme,   FillKind::ties,
                            FillKind::cancelling,     FillKind::selection, FillKind::integers,
                            FillKind::position_digits};
constexpr std::array kTypes{ElementType::f32, ElementType::f16, ElementType::bf16,
                            ElementType::f64};

/// Every query of entry 1, head 3 by the length that the cache had when it was asked.
std::map<std::int64_t, std::vector<std::vector<double>>> queries_by_position(
    const Scenario& scenario) {
  const Timeline timeline(scenario);
  const Fill fill(scenario, timeline);
  std::map<std::int64_t, std::vector<std::vector<double>>> found;
  for (std::size_t step = 0; step < scenario.steps.size(); ++step) {
    const EntryStep& entry = timeline.steps()[step].entries[1];
    for (std::int64_t q = 0; q < entry.queries; ++q) {
      std::vector<double> row(static_cast<std::size_t>(scenario.head_size));
      fill.query_row(step, 1, 3, q, row);
      found[entry.origin.value + q].push_back(row);
    }
  }
  return found;
}

TEST(Fill, QueriesDoNotDependOnHowStepsAreSplit) {
  for (const FillKind kind : kFills) {
    const auto whole =
        queries_by_position(windowed(kind, {append(9), Rollback{{3, 3}}, append(7, 1)}));
    const auto split =
        queries_by_position(windowed(kind, {append(1), append(5), append(3), Rollback{{3, 3}},
                                            append(2, 1), append(1, 1), append(4, 1)}));
    EXPECT_EQ(whole.size(), 13u);
    EXPECT_EQ(whole, split) << to_string(kind);
  }
}

TEST(Fill, QueriesOfDifferentPositionsHeadsEntriesAndGenerationsDiffer) {
  for (const FillKind kind : {FillKind::random, FillKind::needles}) {
    const Scenario scenario = windowed(kind, {append(8), Rollback{{4, 4}}, append(4, 1)});
    const Timeline timeline(scenario);
    const Fill fill(scenario, timeline);
    std::set<std::vector<double>> rows;
    for (const std::size_t step : {0, 2}) {
      for (std::int64_t entry = 0; entry < 2; ++entry) {
        for (std::int64_t head = 0; head < 4; ++head) {
          for (std::int64_t q = 0; q < timeline.steps()[step].entries[0].queries; ++q) {
            std::vector<double> row(16);
            fill.query_row(step, entry, head, q, row);
            rows.insert(row);
          }
        }
      }
    }
    EXPECT_EQ(rows.size(), 2u * 4 * 12) << to_string(kind);
  }
}

TEST(Fill, KeyAndValueRowsAreAllDifferent) {
  for (const ElementType type : kTypes) {
    for (const FillKind kind : kFills) {
      Scenario scenario = windowed(kind, {append(4)});
      scenario.head_size = scenario.value_head_size = 8;
      scenario.element_type = type;
      const Timeline timeline(scenario);
      const Fill fill(scenario, timeline);
      const bool unique_values = !is_position_fill(kind);
      std::set<std::vector<double>> rows;
      std::size_t count = 0;
      for (std::int64_t entry = 0; entry < 4; ++entry) {
        for (std::int64_t head = 0; head < 4; ++head) {
          for (std::int64_t position = 0; position < 60; ++position) {
            for (std::int64_t generation = 0; generation < 3; ++generation) {
              std::vector<double> row(8);
              fill.key_row(entry, head, {{position}, generation}, row);
              rows.insert(row);
              ++count;
              if (!unique_values) continue;
              fill.value_row(entry, head, {{position}, generation}, row);
              rows.insert(row);
              ++count;
            }
          }
        }
      }
      EXPECT_EQ(rows.size(), count) << to_string(kind) << ' ' << to_string(type);
    }
  }
}

TEST(Fill, SeedChangesEveryTensor) {
  Scenario first = windowed(FillKind::random, {append(4)});
  Scenario second = first;
  second.fill.seed = 12;
  const Timeline timeline(first);
  const Fill a(first, timeline);
  const Fill b(second, timeline);
  EXPECT_NE(a.key(0, 0, {{1}, 0}, 2), b.key(0, 0, {{1}, 0}, 2));
  EXPECT_NE(a.value(0, 0, {{1}, 0}, 2), b.value(0, 0, {{1}, 0}, 2));
  EXPECT_NE(a.query(0, 0, 0, 1, 2), b.query(0, 0, 0, 1, 2));
}

TEST(Fill, TheNumberOfEntriesDoesNotChangeTheirData) {
  for (const FillKind kind : kFills) {
    const Scenario few = windowed(kind, {append(6)});
    Scenario many = few;
    many.batch = 600;
    const std::vector<std::int64_t> tokens(600, 6);
    many.steps = {Append{tokens, tokens, 0}};
    const Timeline few_timeline(few);
    const Timeline many_timeline(many);
    const Fill a(few, few_timeline);
    const Fill b(many, many_timeline);
    for (std::int64_t lane = 0; lane < 16; ++lane) {
      EXPECT_EQ(a.key(1, 1, {{4}, 0}, lane), b.key(1, 1, {{4}, 0}, lane));
      EXPECT_EQ(a.value(1, 1, {{4}, 0}, lane), b.value(1, 1, {{4}, 0}, lane));
      EXPECT_EQ(a.query(0, 1, 3, 4, lane), b.query(0, 1, 3, 4, lane));
    }
  }
}

TEST(Fill, FirstEntrySelectsTheDataOfALaterEntry) {
  for (const FillKind kind : kFills) {
    const Scenario whole = windowed(kind, {append(6)});
    Scenario part = whole;
    part.batch = 1;
    part.fill.first_entry = 1;
    part.steps = {Append{{6}, {6}, 0}};
    const Timeline whole_timeline(whole);
    const Timeline part_timeline(part);
    const Fill a(whole, whole_timeline);
    const Fill b(part, part_timeline);
    for (std::int64_t position = 0; position < 6; ++position) {
      for (std::int64_t lane = 0; lane < 16; ++lane) {
        EXPECT_EQ(a.key(1, 1, {{position}, 0}, lane), b.key(0, 1, {{position}, 0}, lane));
        EXPECT_EQ(a.value(1, 1, {{position}, 0}, lane), b.value(0, 1, {{position}, 0}, lane));
        EXPECT_EQ(a.query(0, 1, 3, position, lane), b.query(0, 0, 3, position, lane));
      }
    }
  }
}

TEST(Fill, EveryValueIsRepresentable) {
  for (const ElementType type : kTypes) {
    for (const FillKind kind : kFills) {
      Scenario scenario = windowed(kind, {append(12)});
      scenario.element_type = type;
      const Timeline timeline(scenario);
      const Fill fill(scenario, timeline);
      for (std::int64_t position = 0; position < 12; ++position) {
        for (std::int64_t lane = 0; lane < 16; ++lane) {
          for (const double x :
               {fill.key(1, 1, {{position}, 0}, lane), fill.value(1, 1, {{position}, 0}, lane),
                fill.query(0, 1, 2, position, lane)}) {
            ASSERT_EQ(round_to(type, x), x) << to_string(kind) << ' ' << to_string(type);
          }
        }
      }
    }
  }
}

TEST(Fill, RandomValuesHaveMeanZeroAndVarianceOne) {
  const Scenario scenario = windowed(FillKind::random, {append(4)});
  const Timeline timeline(scenario);
  const Fill fill(scenario, timeline);
  double sum = 0;
  double squares = 0;
  constexpr int kCount = 20000;
  for (int i = 0; i < kCount; ++i) {
    const double x = fill.key(0, 0, {{i / 16}, 0}, i % 16);
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / kCount, 0, 0.04);
  EXPECT_NEAR(squares / kCount, 1, 0.05);
}

double dot(const Fill& fill, std::size_t step, std::int64_t query, Token token, double scale) {
  double sum = 0;
  for (std::int64_t lane = 0; lane < 256; ++lane) {
    sum += fill.query(step, 0, 0, query, lane) * fill.key(0, 0, token, lane);
  }
  return sum * scale;
}

/// Many lanes, so that codes hardly overlap and a hit stands out.
Scenario sharp(std::vector<Step> steps) {
  Scenario scenario = windowed(FillKind::needles, std::move(steps));
  scenario.batch = 1;
  scenario.head_size = scenario.value_head_size = 256;
  for (Step& step : scenario.steps) {
    if (auto* a = std::get_if<Append>(&step)) a->tokens = a->queries = {a->tokens[0]};
    if (auto* r = std::get_if<Rollback>(&step)) r->tokens = {r->tokens[0]};
  }
  return scenario;
}

TEST(Needles, PointAtTheEndsTheMiddleAndTheNeighboursOfTheVisibleSet) {
  for (const double scale : {1.0 / 16, 0.5, 1e-3}) {
    Scenario scenario = sharp({append(20)});
    scenario.scale = scale;
    const Timeline timeline(scenario);
    const Fill fill(scenario, timeline);
    // Query 12 with window 5 sees 8..12; 13 is ahead of it and 7 has just left.
    const std::set<std::int64_t> targets{7, 8, 10, 12, 13};
    for (std::int64_t position = 0; position < 20; ++position) {
      const double logit = dot(fill, 0, 12, {{position}, 0}, scale);
      if (targets.count(position) != 0) {
        EXPECT_GT(logit, 4.5) << position;
        EXPECT_LT(logit, 11.5) << position;
      } else {
        EXPECT_LT(std::abs(logit), 3.5) << position;
      }
    }
  }
}

TEST(Needles, PointAtTheTokenThatARollbackTookFromTheNextPosition) {
  const Scenario scenario = sharp({append(10), Rollback{{4}}, append(1, 1)});
  const Timeline timeline(scenario);
  const Fill fill(scenario, timeline);
  EXPECT_GT(dot(fill, 2, 0, {{7}, 0}, 1.0 / 16), 4.5);  // Stale row behind the newest token.
  EXPECT_GT(dot(fill, 2, 0, {{7}, 1}, 1.0 / 16), 4.5);  // Its replacement, not there yet.
  EXPECT_GT(dot(fill, 2, 0, {{6}, 1}, 1.0 / 16), 4.5);  // The query's own token.
  EXPECT_LT(dot(fill, 2, 0, {{6}, 0}, 1.0 / 16), 3.5);  // What it replaced.
}

TEST(Needles, QueriesStayFiniteForExtremeScales) {
  for (const double scale : {1e-30, 1e-4, 1e4, 1e30}) {
    Scenario scenario = windowed(FillKind::needles, {append(6)});
    scenario.element_type = ElementType::f16;
    scenario.scale = scale;
    const Timeline timeline(scenario);
    const Fill fill(scenario, timeline);
    for (std::int64_t lane = 0; lane < 16; ++lane) {
      EXPECT_TRUE(std::isfinite(fill.query(0, 0, 0, 5, lane)));
    }
  }
}

TEST(Needles, QueriesThatSeeNothingHaveValues) {
  Scenario scenario = sharp({append(2)});
  scenario.op = Operator::attention;
  scenario.opset = 24;
  scenario.cache = {LayoutKind::full, 8, std::nullopt};
  scenario.nonpad_kv_seqlen = true;
  std::get<Append>(scenario.steps[0]).queries = {5};
  const Timeline timeline(scenario);
  ASSERT_TRUE(visible_positions(scenario, timeline, 0, 0, 0, 1).empty());
  const Fill fill(scenario, timeline);
  EXPECT_GT(dot(fill, 0, 1, {{0}, 0}, 1.0 / 16), 4.5);  // The nearest key that must stay hidden.
}

TEST(Fill, PoisonsAreWhatTheirNamesSay) {
  Scenario scenario = windowed(FillKind::random, {append(4)});
  for (const ElementType type : kTypes) {
    scenario.element_type = type;
    const Timeline timeline(scenario);
    const Fill fill(scenario, timeline);
    EXPECT_EQ(fill.poison(Poison::zero), 0);
    EXPECT_EQ(round_to(type, fill.poison(Poison::finite)), fill.poison(Poison::finite));
    EXPECT_NE(fill.poison(Poison::finite), 0);
    EXPECT_EQ(fill.poison(Poison::huge), largest_finite(type));
    EXPECT_TRUE(std::isnan(fill.poison(Poison::nan)));
  }
}

}  // namespace
}  // namespace kvcheck::model
