// Rows that runs share are those that the fill gives each of them.
#include "properties/drawn_rows.h"

#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "model/element_type.h"
#include "model/mask.h"
#include "model/scenario_json.h"

namespace kvcheck::properties {
namespace {

using model::Scenario;

/// Two entries, two KV heads of two query heads, and tokens that are written a second time.
Scenario scenario_of(const std::string& kind, const std::string& steps) {
  return model::parse_scenario(R"({"schema":1,"operator":"gqa","batch":2,"query_heads":4,
      "kv_heads":2,"head_size":8,"element_type":"f16","cache":{"layout":"full","capacity":9},
      "fill":{"kind":")" + kind +
                               R"(","seed":11)" +
                               (kind == "position_digits" ? R"(,"index":2)" : "") +
                               R"(},"steps":)" + steps + "}");
}

constexpr const char* kWhole = R"([{"append":4},{"rollback":2},{"append":3}])";
constexpr const char* kCut =
    R"([{"append":1},{"append":3},{"rollback":2},{"append":2},{"append":1}])";

std::vector<double> numbers(const Scenario& s, std::span<const std::byte> bytes) {
  const std::size_t width = model::element_bytes(s.element_type);
  std::vector<double> result;
  for (std::size_t at = 0; at < bytes.size(); at += width) {
    result.push_back(model::load_element(s.element_type, bytes.data() + at));
  }
  return result;
}

/// Rows of all heads, each as the fill gives it.
template <class Row>
std::vector<double> drawn(std::int64_t heads, std::int64_t lanes, const Row& row_of) {
  std::vector<double> result;
  for (std::int64_t head = 0; head < heads; ++head) {
    std::vector<double> row(static_cast<std::size_t>(lanes));
    row_of(head, std::span(row));
    result.insert(result.end(), row.begin(), row.end());
  }
  return result;
}

/// Compares every query, key and value of the appends of `s` with its fill.
void expect_rows_of_the_fill(const Scenario& s, DrawnRows& rows) {
  const model::Timeline timeline(s);
  const model::Fill fill(s, timeline);
  for (std::size_t step = 0; step < s.steps.size(); ++step) {
    const auto* append = std::get_if<model::Append>(&s.steps[step]);
    if (!append) continue;
    for (std::int64_t b = 0; b < s.batch; ++b) {
      const auto& state = timeline.steps()[step].entries[static_cast<std::size_t>(b)];
      for (std::int64_t i = 0; i < append->tokens[static_cast<std::size_t>(b)]; ++i) {
        const model::Token token{{state.past + i}, append->generation};
        EXPECT_EQ(numbers(s, rows.keys(fill, b, token)),
                  drawn(s.kv_heads, s.head_size, [&](std::int64_t head, std::span<double> row) {
                    fill.key_row(b, head, token, row);
                  }));
        EXPECT_EQ(numbers(s, rows.values(fill, b, token)),
                  drawn(s.kv_heads, s.value_head_size, [&](std::int64_t h, std::span<double> row) {
                    fill.value_row(b, h, token, row);
                  }));
        EXPECT_EQ(numbers(s, rows.queries(fill, step, b, i, token)),
                  drawn(s.query_heads, s.head_size,
                        [&](std::int64_t head, std::span<double> row) {
                          fill.query_row(step, b, head, i, row);
                        }))
            << to_string(s.fill.kind) << ", step " << step << ", entry " << b << ", query " << i;
      }
    }
  }
}

class EveryFill : public testing::TestWithParam<const char*> {};

/// The second round and the second split ask for what is there already.
TEST_P(EveryFill, IsSharedByRunsWithOtherSteps) {
  const Scenario whole = scenario_of(GetParam(), kWhole), cut = scenario_of(GetParam(), kCut);
  DrawnRows rows(whole);
  ASSERT_TRUE(rows.fit(cut));
  for (const Scenario* s : {&whole, &cut, &whole}) expect_rows_of_the_fill(*s, rows);
}

INSTANTIATE_TEST_SUITE_P(DrawnRows, EveryFill,
                         testing::Values("random", "needles", "selection", "extreme", "ties",
                                         "cancelling", "integers", "position_code",
                                         "position_digits"));

TEST(DrawnRows, TellGenerationsApart) {
  const Scenario s = scenario_of("random", kWhole);
  const model::Timeline timeline(s);
  const model::Fill fill(s, timeline);
  DrawnRows rows(s);
  const auto old = numbers(s, rows.keys(fill, 0, {{2}, 0}));
  EXPECT_NE(numbers(s, rows.keys(fill, 0, {{2}, 1})), old);
  EXPECT_EQ(numbers(s, rows.keys(fill, 0, {{2}, 0})), old);
}

/// What a query points at is part of its name: here a token that was dropped or that never was.
TEST(DrawnRows, TellQueriesWithOtherNeedlesApart) {
  const Scenario dropped = scenario_of("needles", kWhole);
  Scenario never = dropped;
  never.steps = {model::Append{{2, 2}, {2, 2}, 0}, model::Append{{3, 3}, {3, 3}, 1}};
  DrawnRows rows(dropped);
  expect_rows_of_the_fill(dropped, rows);
  expect_rows_of_the_fill(never, rows);
}

TEST(DrawnRows, AreThoseOfTheEntryThatRunsAlone) {
  const Scenario both = scenario_of("needles", kWhole);
  Scenario second = both;
  second.batch = 1;
  second.fill.first_entry = 1;
  second.steps = {model::Append{{4}, {4}, 0}};
  DrawnRows rows(both);
  ASSERT_TRUE(rows.fit(second));
  expect_rows_of_the_fill(both, rows);
  expect_rows_of_the_fill(second, rows);
  second.fill.first_entry = 2;
  EXPECT_FALSE(rows.fit(second));
}

TEST(DrawnRows, FitWhatHasTheSameData) {
  const Scenario s = scenario_of("needles", kWhole);
  const DrawnRows rows(s);
  const auto fits = [&](auto change) {
    Scenario other = s;
    change(other);
    return rows.fit(other);
  };
  EXPECT_TRUE(fits([](Scenario& o) { o.cache.capacity = 12; }));
  EXPECT_TRUE(fits([](Scenario& o) { o.poison = model::Poison::zero; }));
  EXPECT_FALSE(fits([](Scenario& o) { o.fill.seed = 12; }));
  EXPECT_FALSE(fits([](Scenario& o) { o.fill.kind = model::FillKind::random; }));
  EXPECT_FALSE(fits([](Scenario& o) { o.fill.index = 1; }));
  EXPECT_FALSE(fits([](Scenario& o) { o.element_type = model::ElementType::bf16; }));
  EXPECT_FALSE(fits([](Scenario& o) { o.scale = 0.5; }));
  EXPECT_FALSE(fits([](Scenario& o) { o.kv_heads = 4; }));
  EXPECT_FALSE(fits([](Scenario& o) { o.query_heads = 2; }));
  EXPECT_FALSE(fits([](Scenario& o) { o.head_size = 16; }));
  EXPECT_FALSE(fits([](Scenario& o) { o.batch = 3; }));
  EXPECT_FALSE(fits([](Scenario& o) { o.rotary.emplace(); }));
  EXPECT_FALSE(fits([](Scenario& o) { o.qk_norm.emplace(); }));
}

TEST(DrawnRows, TurnToAnotherDigitWithOtherValues) {
  const Scenario low = scenario_of("position_code", kWhole);
  Scenario high = low;
  high.fill.index = 1;
  DrawnRows rows(low);
  expect_rows_of_the_fill(low, rows);
  rows.turn_to(high);
  ASSERT_TRUE(rows.fit(high));
  expect_rows_of_the_fill(high, rows);
}

/// Spelled out tensors belong to their steps, so nothing is kept of them.
TEST(DrawnRows, KeepNothingOfLiterals) {
  Scenario literal = scenario_of("random", R"([{"append":1}])");
  literal.fill.kind = model::FillKind::literal;
  EXPECT_FALSE(DrawnRows(literal).fit(literal));
}

/// A mask over two entries and four heads of two KV heads.
Scenario masked(const std::string& op, const std::string& mask, const std::string& steps) {
  return model::parse_scenario(R"({"schema":1,)" + op + R"(,"batch":2,"query_heads":4,
      "kv_heads":2,"head_size":8,"fill":{"kind":"random","seed":11},"mask":)" +
                               mask + R"(,"steps":)" + steps + "}");
}

/// Compares the mask of every append of `s` with its cells.
void expect_masks_of_the_scenario(const Scenario& s, DrawnRows& rows) {
  const model::Timeline timeline(s);
  for (std::size_t step = 0; step < s.steps.size(); ++step) {
    if (!std::holds_alternative<model::Append>(s.steps[step])) continue;
    std::vector<std::int64_t> shape = model::mask_shape(s, timeline, step);
    shape.insert(shape.begin(), 4 - shape.size(), 1);
    for (std::int64_t b = 0; b < shape[0]; ++b) {
      for (std::int64_t h = 0; h < shape[1]; ++h) {
        for (std::int64_t q = 0; q < shape[2]; ++q) {
          std::vector<double> expected;
          for (std::int64_t j = 0; j < shape[3]; ++j) {
            const auto cell = model::mask_cell(s, timeline, step, b, h, q, {j});
            const bool boolean = s.mask.kind == model::MaskKind::boolean;
            const double infinity = std::numeric_limits<double>::infinity();
            expected.push_back(boolean ? !cell.hides : cell.hides ? -infinity : cell.bias);
          }
          const auto row = rows.mask_row(s, timeline, step, b, h, q, shape[3]);
          std::vector<double> got;
          if (s.mask.kind == model::MaskKind::boolean) {
            for (const std::byte cell : row) got.push_back(std::to_integer<int>(cell));
          } else {
            got = numbers(s, row);
          }
          EXPECT_EQ(got, expected)
              << "step " << step << ", entry " << b << ", head " << h << ", query " << q;
        }
      }
    }
  }
}

constexpr const char* kGqa = R"("operator":"gqa","cache":{"layout":"full","capacity":80})";
constexpr const char* kAttention = R"("operator":"attention","opset":24)";

struct MaskCase {
  const char *op, *mask;
  const char* tokens = "2";  ///< Of a step; entries may differ under some masks alone.
};

class EveryMask : public testing::TestWithParam<MaskCase> {};

/// Steps that come later see more columns of the rows that are there, and other entries and lengths
/// that the first scenario does not have.
TEST_P(EveryMask, IsSharedByRunsWithOtherSteps) {
  const auto with = [&](const std::string& before, const std::string& behind) {
    return masked(GetParam().op, GetParam().mask,
                  "[" + before + R"(,{"append":)" + GetParam().tokens + "}," + behind + "]");
  };
  const Scenario whole = with(R"({"append":4})", R"({"append":2})");
  const Scenario cut = with(R"({"append":2},{"append":2})", R"({"append":2})");
  const Scenario longer = with(R"({"append":4})", R"({"append":20},{"append":40})");
  DrawnRows rows(whole);
  for (const Scenario* s : {&whole, &cut, &longer, &whole}) expect_masks_of_the_scenario(*s, rows);
}

TEST_P(EveryMask, OfAnotherScenarioIsItsOwn) {
  const Scenario s = masked(GetParam().op, GetParam().mask, R"([{"append":4},{"append":3}])");
  Scenario other = s, unmasked = s;
  other.mask.seed += 1;
  unmasked.mask = {};
  DrawnRows rows(s), plain(unmasked);
  expect_masks_of_the_scenario(s, rows);
  expect_masks_of_the_scenario(other, rows);
  expect_masks_of_the_scenario(other, plain);
}

TEST_P(EveryMask, IsThatOfTheEntryThatRunsAlone) {
  const Scenario both =
      masked(GetParam().op, GetParam().mask,
             std::string(R"([{"append":4},{"append":)") + GetParam().tokens + R"(},{"append":1}])");
  Scenario second = both;
  second.batch = 1;
  second.fill.first_entry = 1;
  second.steps = {model::Append{{4}, {4}, 0}, model::Append{{3}, {3}, 0}};
  DrawnRows rows(both);
  expect_masks_of_the_scenario(both, rows);
  expect_masks_of_the_scenario(second, rows);
}

INSTANTIATE_TEST_SUITE_P(
    DrawnRows, EveryMask,
    testing::Values(
        MaskCase{kGqa, R"({"kind":"additive","rank":4,"hidden_percent":40,"seed":3})", "[1,3]"},
        MaskCase{kGqa, R"({"kind":"additive","rank":4,"one_head":true,"seed":6})", "[1,3]"},
        MaskCase{kGqa, R"({"kind":"additive","rank":4,"one_entry":true,"seed":5})"},
        MaskCase{kAttention, R"({"kind":"boolean","rank":4,"hidden_percent":40,"seed":3})"},
        MaskCase{kAttention, R"({"kind":"boolean","rank":3,"empty_rows":true,"seed":2})"},
        MaskCase{kAttention, R"({"kind":"additive","rank":2,"one_query":true,"seed":2})"},
        MaskCase{kAttention, R"({"kind":"additive","rank":1,"seed":4})"},
        MaskCase{kAttention, R"({"kind":"boolean","rank":2,"missing_columns":1,"seed":4})"}));

}  // namespace
}  // namespace kvcheck::properties
