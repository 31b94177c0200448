// What one query attends to: tokens, doubts, biases, sinks and heads of the gathered row.
#include "model/gather.h"

#include <vector>

#include <gtest/gtest.h>

#include "model/mask.h"
#include "model/parameters.h"
#include "model/visibility.h"
#include "tests/model/held_scenario.h"

namespace kvcheck::model {
namespace {

/// A scenario with its gatherer.
struct Held : HeldScenario {
  explicit Held(Scenario given, const Reading& how = {})
      : HeldScenario(std::move(given)),
        reading(how),
        gatherer(scenario, timeline, fill, 0x1p-24, reading) {}

  std::vector<std::int64_t> positions() const {
    std::vector<std::int64_t> out;
    for (const Position position : gatherer.positions()) out.push_back(position.value);
    return out;
  }

  /// A token as the cache holds it.
  TokenRows token(const HeldToken& name) const {
    return Operands(scenario, timeline, fill, 0x1p-24, reading).stored(name);
  }

  Reading reading;
  Gatherer gatherer;
};

Append asks(std::int64_t tokens) { return {{tokens}, {tokens}, 0}; }

Scenario grouped(std::vector<Step> steps) {
  Scenario s;
  s.query_heads = 4;
  s.kv_heads = 2;
  s.fill.seed = 5;
  s.steps = std::move(steps);
  return s;
}

TEST(Gather, TakesTheKeysThatTheQuerySees) {
  Scenario s = grouped({asks(3), asks(3)});
  s.cache.window_size = 2;
  Held held(s);
  const AttentionRowInput& row = held.gatherer.row(1, 0, 0, 1);
  EXPECT_EQ(held.positions(), (std::vector<std::int64_t>{3, 4}));
  ASSERT_EQ(row.keys.size(), 2u);
  ASSERT_EQ(row.values.size(), 2u);
  EXPECT_EQ(row.biases, (std::vector<double>{0, 0}));
  EXPECT_FALSE(row.sink);
  EXPECT_TRUE(row.key_doubts.empty());
  EXPECT_TRUE(row.value_doubts.empty());
}

TEST(Gather, ReadsTheHeadsOfTheGroup) {
  Held held(grouped({asks(3)}));
  for (std::int64_t head = 0; head < 4; ++head) {
    const AttentionRowInput& row = held.gatherer.row(0, 0, head, 2);
    for (std::int64_t j = 0; j < 3; ++j) {
      for (std::int64_t lane = 0; lane < 8; ++lane) {
        const auto at = static_cast<std::size_t>(j);
        const auto c = static_cast<std::size_t>(lane);
        EXPECT_EQ(row.keys[at][c], held.fill.key(0, head / 2, {{j}, 0}, lane));
        EXPECT_EQ(row.values[at][c], held.fill.value(0, head / 2, {{j}, 0}, lane));
        EXPECT_EQ(row.query[c], held.fill.query(0, 0, head, 2, lane));
      }
    }
  }
}

TEST(Gather, FindsTheTokenThatReplacedADroppedOne) {
  Held held(grouped({asks(4), Rollback{{2}}, Append{{3}, {3}, 1}}));
  const AttentionRowInput& row = held.gatherer.row(2, 0, 0, 2);
  ASSERT_EQ(row.keys.size(), 5u);
  for (std::int64_t j = 0; j < 5; ++j) {
    EXPECT_EQ(row.keys[static_cast<std::size_t>(j)][0],
              held.fill.key(0, 0, {{j}, j < 2 ? 0 : 1}, 0));
  }
}

TEST(Gather, MixesExactTokensOfAPastWithDoubtfulOnes) {
  Scenario s = grouped({Past{{2}}, asks(2)});
  s.rotary = RotarySpec{};
  Held held(s);
  const AttentionRowInput& row = held.gatherer.row(1, 0, 2, 1);
  ASSERT_EQ(row.key_doubts.size(), 4u);
  EXPECT_EQ(row.key_doubts[0], nullptr);
  EXPECT_EQ(row.key_doubts[1], nullptr);
  EXPECT_NE(row.key_doubts[2], nullptr);
  EXPECT_NE(row.key_doubts[3], nullptr);
  EXPECT_TRUE(row.value_doubts.empty());
  EXPECT_EQ(row.query_doubts.size(), 8u);
  // The doubts are those of KV head 1, as the keys are.
  const TokenRows token = held.token({0, {{2}, 0}, 1});
  for (std::size_t lane = 0; lane < 8; ++lane) {
    EXPECT_EQ(row.keys[2][lane], token.keys[8 + lane]);
    EXPECT_EQ(row.key_doubts[2][lane], token.key_doubts[8 + lane]);
  }
}

TEST(Gather, HasDoubtsOfValuesUnderAQuantisedCache) {
  Scenario s = grouped({Past{{1}}, asks(1)});
  s.cache.quantisation.kind = QuantisationKind::int8;
  Held held(s);
  const AttentionRowInput& row = held.gatherer.row(1, 0, 3, 0);
  ASSERT_EQ(row.value_doubts.size(), 2u);
  const TokenRows token = held.token({0, {{0}, 0}, 0});
  for (std::size_t lane = 0; lane < 8; ++lane) {
    EXPECT_EQ(row.values[0][lane], token.values[8 + lane]);
    EXPECT_EQ(row.value_doubts[0][lane], token.value_doubts[8 + lane]);
  }
}

TEST(Gather, ForgetsTheDoubtsOfTheRowBefore) {
  Scenario s = grouped({Past{{2}}, asks(2)});
  s.rotary = RotarySpec{};
  Held held(s);
  held.gatherer.row(1, 0, 0, 1);
  const Position past[] = {{0}, {1}};
  const AttentionRowInput& row =
      held.gatherer.row_over({held.scenario, held.timeline, 1, 0, 0, 1}, past);
  EXPECT_EQ(row.keys.size(), 2u);
  EXPECT_TRUE(row.key_doubts.empty());
}

TEST(Gather, AddsTheBiasOfEachHead) {
  Scenario s = grouped({asks(6)});
  s.mask = {MaskKind::additive, 4, 30, 8};
  Held held(s);
  bool heads_differ = false;
  std::vector<double> first;
  for (std::int64_t head = 0; head < 4; ++head) {
    const AttentionRowInput& row = held.gatherer.row(0, 0, head, 5);
    const auto seen = visible_positions(held.scenario, held.timeline, 0, 0, head, 5);
    ASSERT_EQ(row.keys.size(), seen.size());
    ASSERT_EQ(row.biases.size(), seen.size());
    for (std::size_t j = 0; j < seen.size(); ++j) {
      EXPECT_EQ(row.biases[j], mask_bias(held.scenario, 0, head, {5}, seen[j]));
      EXPECT_EQ(row.keys[j][0], held.fill.key(0, head / 2, {seen[j], 0}, 0));
    }
    if (head == 0) first = row.biases;
    heads_differ = heads_differ || row.biases != first;
  }
  EXPECT_TRUE(heads_differ);
}

TEST(Gather, AsksNoMaskOverGivenPositions) {
  Scenario s = grouped({asks(4)});
  s.op = Operator::attention;
  s.opset = 24;
  s.mask = {MaskKind::additive, 2, 100};
  Held held(s);
  EXPECT_TRUE(held.gatherer.row(0, 0, 0, 0).keys.empty());
  const Position every[] = {{0}, {1}, {2}, {3}};
  const AttentionRowInput& row =
      held.gatherer.row_over({held.scenario, held.timeline, 0, 0, 1, 0}, every);
  EXPECT_EQ(held.positions(), (std::vector<std::int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(row.keys.size(), 4u);
  EXPECT_EQ(row.biases, std::vector<double>(4, 0.0));
  EXPECT_EQ(row.query[3], held.fill.query(0, 0, 1, 0, 3));
  // The same query again sees what it saw, whatever was gathered in between.
  EXPECT_TRUE(held.gatherer.row(0, 0, 0, 0).keys.empty());
  EXPECT_TRUE(held.positions().empty());
}

TEST(Gather, PutsASinkBesideTheKeys) {
  Scenario s = grouped({asks(2)});
  s.smooth_softmax = true;
  EXPECT_EQ(Held(s).gatherer.row(0, 0, 1, 1).sink, 0.0);
  s.head_sink = true;
  Held held(s);
  for (std::int64_t head = 0; head < 4; ++head) {
    EXPECT_EQ(held.gatherer.row(0, 0, head, 1).sink, sink_logit(s, head))
        << "a sink of the head's own replaces the smooth one";
  }
}

TEST(Gather, CarriesScaleAndSoftcap) {
  Scenario s = grouped({asks(2)});
  s.scale = 0.25;
  s.softcap = 3;
  Held held(s);
  EXPECT_EQ(held.gatherer.row(0, 0, 0, 1).scale, 0.25);
  EXPECT_EQ(held.gatherer.row(0, 0, 0, 1).softcap, 3);
}

TEST(Gather, TakesAReadingsTokensHeadsAndLastWord) {
  Reading reading;
  reading.visible = [](const QueryPlace&) { return std::vector<Position>{{0}, {1}}; };
  reading.held = [](const QueryPlace& place, Position) {
    return HeldToken{place.entry, {{2}, 0}, place.step};
  };
  reading.kv_head = [](const QueryPlace&) -> std::int64_t { return 1; };
  reading.bias = [](const QueryPlace&, Position key) { return static_cast<double>(key.value) + 7; };
  reading.distort = [](const QueryPlace&, AttentionRowInput& row) { row.softcap = 9; };
  Held held(grouped({asks(3)}), reading);
  const AttentionRowInput& row = held.gatherer.row(0, 0, 0, 2);
  ASSERT_EQ(row.keys.size(), 2u);
  EXPECT_EQ(row.keys[0][4], held.fill.key(0, 1, {{2}, 0}, 4));
  EXPECT_EQ(row.values[1][4], held.fill.value(0, 1, {{2}, 0}, 4));
  EXPECT_EQ(row.biases, (std::vector<double>{7, 8}));
  EXPECT_EQ(row.softcap, 9);
}

}  // namespace
}  // namespace kvcheck::model
