// Which token a row holds.
#include "properties/row_content.h"

#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "model/parameters.h"
#include "model/quantisation.h"
#include "model/scenario_json.h"
#include "properties/execution.h"
#include "properties/requests.h"
#include "tests/properties/model_target.h"

namespace kvcheck::properties {
namespace {

class RowContentTest : public testing::Test {
 protected:
  RowContentTest()
      : scenario_(model::parse_scenario(R"({"schema":1,"operator":"gqa","head_size":8,"batch":2,
            "query_heads":2,"kv_heads":2,"cache":{"layout":"full","capacity":6},
            "fill":{"kind":"random","seed":5},
            "steps":[{"past":4},{"rollback":1},{"append":1}]})")),
        timeline_(scenario_),
        fill_(scenario_, timeline_),
        content_(scenario_, timeline_, fill_, 0x1p-24),
        rows_(load_request(scenario_, timeline_, fill_, 0).rows) {}

  model::Scenario scenario_;
  model::Timeline timeline_;
  model::Fill fill_;
  RowContent content_;
  kernels::CacheRows rows_;
};

TEST_F(RowContentTest, MatchesTheTokenOfTheRightEntryHeadAndGeneration) {
  EXPECT_TRUE(content_.match(rows_, 1, 2, {1, {{2}, 0}, 0}).both());
  EXPECT_FALSE(content_.match(rows_, 1, 2, {1, {{3}, 0}, 0}).key);
  EXPECT_FALSE(content_.match(rows_, 1, 3, {1, {{3}, 1}, 2}).both());
}

TEST_F(RowContentTest, IdentifiesTokensByTheirKey) {
  const auto found = content_.identify(rows_, 0, 1, 3);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->token.position.value, 3);
  EXPECT_EQ(found->token.generation, 0);
  EXPECT_EQ(found->step, 0u);
  EXPECT_FALSE(content_.identify(rows_, 0, 1, 5).has_value());  // Poison.
}

TEST_F(RowContentTest, TellsKeysFromValues) {
  rows_.value.bytes[0] ^= std::byte{1};
  const auto match = content_.match(rows_, 0, 0, {0, {{0}, 0}, 0});
  EXPECT_TRUE(match.key);
  EXPECT_FALSE(match.value);
}

TEST_F(RowContentTest, NamesTheLaneThatDiffersKeysFirst) {
  const model::HeldToken token{1, {{2}, 0}, 0};
  EXPECT_EQ(content_.first_other_lane(rows_, 1, 2, token), 0);
  // Rows of 8 lanes of f32: row 2 of KV head 1 of entry 1.
  const std::size_t row = ((1 * 2 + 1) * 6 + 2) * 32;
  rows_.value.bytes[row + 5 * 4 + 1] ^= std::byte{1};
  EXPECT_EQ(content_.first_other_lane(rows_, 1, 2, token), 5);
  rows_.key.bytes[row + 7 * 4 + 3] ^= std::byte{1};
  EXPECT_EQ(content_.first_other_lane(rows_, 1, 2, token), 7);
}

TEST_F(RowContentTest, NamesTheStepThatBroughtAToken) {
  EXPECT_EQ(content_.held(2, 0, {3}).step, 2u);
  EXPECT_EQ(content_.held(2, 0, {3}).token.generation, 1);
  EXPECT_EQ(content_.held(2, 0, {2}).step, 0u);
}

TEST_F(RowContentTest, NamesATensorOfAnotherShapeOrType) {
  EXPECT_EQ(content_.shape_problem(rows_), "");
  rows_.key.type = kernels::ElementType::i8;
  EXPECT_EQ(content_.shape_problem(rows_),
            "the key rows are i8 [2,2,6,8]; the cache stores f32 [2,2,rows,8]");
}

/// The rows after the last step, from the exact model, and their content.
struct Told {
  explicit Told(const char* text)
      : scenario(model::parse_scenario(text)),
        timeline(scenario),
        fill(scenario, timeline),
        content(scenario, timeline, fill, 0x1p-24) {
    const auto target = make_model_target(scenario);
    auto execution = execute(*target, scenario, timeline, fill);
    rows = *execution.steps.back().result.rows;
  }
  RowContent::Match match(std::int64_t row) {
    return content.match(rows, 0, row, content.held(scenario.steps.size() - 1, 0, {row}));
  }

  model::Scenario scenario;
  model::Timeline timeline;
  model::Fill fill;
  RowContent content;
  kernels::CacheRows rows;
};

/// Moves the first lane of a row by `ulps` units of the last place of f32.
void move(kernels::Tensor& tensor, std::int64_t row, int ulps) {
  float value = 0;
  std::byte* at = tensor.bytes.data() + row * tensor.shape[3] * 4;
  std::memcpy(&value, at, sizeof value);
  for (int i = 0; i < ulps; ++i) value = std::nextafterf(value, 1e9f);
  std::memcpy(at, &value, sizeof value);
}

TEST(ComputedKeys, MayBeRoundedOtherwiseAndValuesMayNot) {
  Told told(R"({"schema":1,"operator":"gqa","head_size":8,"rotary":{},"qk_norm":{},
      "cache":{"capacity":6},"fill":{"seed":9},"steps":[{"past":2},{"append":3}]})");
  for (std::int64_t row = 0; row < 5; ++row) EXPECT_TRUE(told.match(row).both()) << row;
  move(told.rows.key, 3, 1);
  EXPECT_TRUE(told.match(3).both());
  move(told.rows.key, 3, 400);
  EXPECT_FALSE(told.match(3).key);
  move(told.rows.value, 4, 1);
  EXPECT_FALSE(told.match(4).value);
  move(told.rows.key, 1, 1);  // Of the past, which nobody computed.
  EXPECT_FALSE(told.match(1).key);
  EXPECT_FALSE(told.content.match(told.rows, 0, 2, told.content.held(1, 0, {4})).key);
}

TEST(QuantisedRows, AreComparedAsCodes) {
  for (const char* kind : {"int8", "int4", "fp8"}) {
    const std::string text = std::string(R"({"schema":1,"operator":"gqa","head_size":7,
        "cache":{"capacity":6,"quantisation":{"kind":")") +
                             kind + R"(","per_channel":true}},"fill":{"seed":2},
        "steps":[{"past":2},{"append":3}]})";
    Told told(text.c_str());
    for (std::int64_t row = 0; row < 5; ++row) EXPECT_TRUE(told.match(row).both()) << kind << row;
    const auto lanes = static_cast<std::size_t>(told.rows.key.shape[3]);
    EXPECT_EQ(lanes, std::string(kind) == "int4" ? 4u : 7u);
    told.rows.key.bytes[3 * lanes] ^= std::byte{0x03};
    EXPECT_FALSE(told.match(3).key) << kind;
    EXPECT_TRUE(told.match(3).value) << kind;
    const auto found = told.content.identify(told.rows, 0, 0, 4);
    ASSERT_TRUE(found.has_value()) << kind;
    EXPECT_EQ(found->token.position.value, 4) << kind;
  }
}

TEST(QuantisedRows, OfAPastAreCertainOnATieToo) {
  model::Scenario s = model::parse_scenario(R"({"schema":1,"operator":"gqa","head_size":1,
      "fill":{"kind":"literal"},"cache":{"capacity":2,"quantisation":{"kind":"int8"}},
      "steps":[{"past":1,"k":[[[[1]]]],"v":[[[[1]]]]},
               {"append":1,"q":[[[[0]]]],"k":[[[[1]]]],"v":[[[[1]]]]}]})");
  const float scale = model::cache_scale(s, model::CacheSide::key, 0, 0);
  int ties = 0;
  for (int code = 0; code < 60; ++code) {
    const double value = model::round_to(model::ElementType::f32, (code + 0.5) * scale);
    const auto range = model::quantise_interval(model::QuantisationKind::int8, scale, value, value);
    if (range.lowest == range.highest) continue;
    ++ties;
    std::get<model::Past>(s.steps[0]).tensors.k.values = {value};
    Told told(model::canonical_text(s).c_str());
    const double stored = model::quantise(model::QuantisationKind::int8, scale, value);
    for (const double taken : {range.lowest, range.highest}) {
      told.rows.key.bytes[0] = static_cast<std::byte>(static_cast<std::int8_t>(taken));
      EXPECT_EQ(told.match(0).key, taken == stored) << code;
    }
  }
  EXPECT_GT(ties, 0);
}

TEST(QuantisedRows, MayTakeEitherSideOfATie) {
  // The scale comes from the seed, so values that fall on a tie are made from it.
  const char* text = R"({"schema":1,"operator":"gqa","head_size":1,"fill":{"kind":"literal"},
      "cache":{"capacity":2,"quantisation":{"kind":"int8"}},
      "steps":[{"append":1,"q":[[[[0]]]],"k":[[[[1]]]],"v":[[[[1]]]]}]})";
  model::Scenario s = model::parse_scenario(text);
  const float scale = model::cache_scale(s, model::CacheSide::key, 0, 0);
  int ties = 0;
  for (int code = 0; code < 60; ++code) {
    const double value = model::round_to(model::ElementType::f32, (code + 0.5) * scale);
    const auto range = model::quantise_interval(model::QuantisationKind::int8, scale, value, value);
    if (range.lowest == range.highest) continue;
    ++ties;
    std::get<model::Append>(s.steps[0]).tensors.k.values = {value};
    Told told(model::canonical_text(s).c_str());
    for (const double taken : {range.lowest, range.highest}) {
      told.rows.key.bytes[0] = static_cast<std::byte>(static_cast<std::int8_t>(taken));
      EXPECT_TRUE(told.match(0).both()) << code << ' ' << taken;
    }
    told.rows.key.bytes[0] = static_cast<std::byte>(static_cast<std::int8_t>(range.highest + 1));
    EXPECT_FALSE(told.match(0).key) << code;
  }
  EXPECT_GT(ties, 0);
}

}  // namespace
}  // namespace kvcheck::properties
