// Every rule refuses with the field, the value and the remedy.
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "model/scenario.h"

namespace kvcheck::model {
namespace {

using Counts = std::vector<std::int64_t>;
constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();

Scenario gqa() {
  Scenario s;
  s.batch = 2;
  s.query_heads = 4;
  s.kv_heads = 2;
  s.cache = {LayoutKind::block, 6, 4};
  s.steps = {Append{{3, 2}, {3, 2}, 0}, Append{{1, 1}, {1, 1}, 0}, Rollback{{1, 0}}};
  return s;
}

Scenario attention() {
  Scenario s;
  s.op = Operator::attention;
  s.opset = 24;
  s.batch = 2;
  s.value_head_size = 10;
  s.steps = {Past{{4, 4}}, Append{{2, 2}, {3, 3}, 0}, Rollback{{1, 1}}};
  return s;
}

Scenario nonpad() {
  Scenario s = attention();
  s.nonpad_kv_seqlen = true;
  s.cache.capacity = 8;
  s.steps = {Append{{3, 5}, {2, 2}, 0}, Append{{0, 0}, {1, 1}, 0}};
  return s;
}

struct Rule {
  const char* name;
  std::function<Scenario()> base;
  std::function<void(Scenario&)> broken;
  std::string field, value, remedy;  ///< The remedy as a part of the text.
};

void PrintTo(const Rule& rule, std::ostream* out) { *out << rule.name; }

class ValidateRule : public testing::TestWithParam<Rule> {};

TEST_P(ValidateRule, RefusesWithFieldValueAndRemedy) {
  const Rule& rule = GetParam();
  Scenario s = rule.base();
  ASSERT_TRUE(validate(s).empty()) << validate(s).front().message();
  rule.broken(s);
  const auto refusals = validate(s);
  ASSERT_FALSE(refusals.empty());
  bool found = false;
  std::string all;
  for (const Refusal& refusal : refusals) {
    found = found || (refusal.field == rule.field && refusal.value == rule.value &&
                      refusal.remedy.find(rule.remedy) != std::string::npos);
    all += refusal.message() + "\n";
    EXPECT_EQ(refusal.message(), refusal.field + " = " + refusal.value + ": " + refusal.remedy);
  }
  EXPECT_TRUE(found) << "wanted " << rule.field << " = " << rule.value << ": ..." << rule.remedy
                     << "\ngot\n"
                     << all;
}

INSTANTIATE_TEST_SUITE_P(
    Shape, ValidateRule,
    testing::Values(
        Rule{"batch_zero", gqa, [](Scenario& s) { s.batch = 0; }, "batch", "0",
             "between 1 and 4096"},
        Rule{"batch_huge", gqa, [](Scenario& s) { s.batch = kHuge; }, "batch",
             "9223372036854775807", "between 1 and 4096"},
        Rule{"query_heads", gqa, [](Scenario& s) { s.query_heads = 4097; }, "query_heads", "4097",
             "between 1 and 4096"},
        Rule{"kv_heads", gqa, [](Scenario& s) { s.kv_heads = -1; }, "kv_heads", "-1",
             "between 1 and 4096"},
        Rule{"head_size", gqa, [](Scenario& s) { s.head_size = 0; }, "head_size", "0",
             "between 1 and 4096"},
        Rule{"value_head_size", attention, [](Scenario& s) { s.value_head_size = 5000; },
             "value_head_size", "5000", "between 1 and 4096"},
        Rule{"divisible", gqa, [](Scenario& s) { s.query_heads = 3; }, "query_heads", "3",
             "multiple of kv_heads (2)"},
        Rule{"scale_negative", attention, [](Scenario& s) { s.scale = -0.5; }, "scale", "-0.5",
             "above 0"},
        Rule{"scale_zero", gqa, [](Scenario& s) { s.scale = 0; }, "scale", "0", "not 0"},
        Rule{"scale_nan", gqa,
             [](Scenario& s) { s.scale = std::numeric_limits<double>::quiet_NaN(); }, "scale",
             "nan", "leave it out for 1/sqrt(head_size)"},
        Rule{"scale_infinite", gqa,
             [](Scenario& s) { s.scale = std::numeric_limits<double>::infinity(); }, "scale", "inf",
             "finite"},
        Rule{"no_steps", gqa, [](Scenario& s) { s.steps.clear(); }, "steps", "[]",
             "at least one step"},
        Rule{"many_steps", gqa,
             [](Scenario& s) {
               s.steps.assign(kMaxStepEntries / 2 + 1, Append{{1, 1}, {1, 1}, 0});
             },
             "steps", "524289", "at most 524288 steps with batch 2"},
        Rule{"capacity_negative", gqa, [](Scenario& s) { s.cache.capacity = -1; }, "cache.capacity",
             "-1", "between 0 (as large as needed) and 2147483647"},
        Rule{"capacity_huge", gqa, [](Scenario& s) { s.cache.capacity = kMaxLength + 1; },
             "cache.capacity", "2147483648", "between 0"},
        Rule{"window_zero", gqa, [](Scenario& s) { s.cache.window_size = 0; }, "cache.window_size",
             "0", "at least 1 for layout block"},
        Rule{"mask_rank", attention, [](Scenario& s) { s.mask.rank = 5; }, "mask.rank", "5",
             "between 1 and 4"},
        Rule{"mask_percent", attention, [](Scenario& s) { s.mask.hidden_percent = 101; },
             "mask.hidden_percent", "101", "between 0 and 100"},
        Rule{"mask_without_kind", attention, [](Scenario& s) { s.mask.seed = 3; }, "mask.kind",
             "none", "leave mask out"},
        Rule{"fill_index_random", gqa, [](Scenario& s) { s.fill.index = 1; }, "fill.index", "1",
             "must be 0"},
        Rule{"fill_index_negative", gqa,
             [](Scenario& s) {
               s.fill.kind = FillKind::position_code;
               s.fill.index = -1;
             },
             "fill.index", "-1", "at least 0"},
        Rule{"no_digit_at_once", gqa,
             [](Scenario& s) {
               s.fill.kind = FillKind::position_digits;
               s.fill.index = 0;
             },
             "fill.index", "0", "from 1 to 4 for position_digits"},
        Rule{"more_digits_than_lanes", gqa,
             [](Scenario& s) {
               s.fill.kind = FillKind::position_digits;
               s.fill.index = 5;
             },
             "fill.index", "5", "two lanes or more of the 8 of a value"}),
    [](const auto& rule) { return rule.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Gqa, ValidateRule,
    testing::Values(
        Rule{"opset", gqa, [](Scenario& s) { s.opset = 23; }, "opset", "23", "must be 1 for gqa"},
        Rule{"value_head_size", gqa, [](Scenario& s) { s.value_head_size = 4; }, "value_head_size",
             "4", "equal head_size (8)"},
        Rule{"causal", gqa, [](Scenario& s) { s.causal = false; }, "causal", "false",
             "must be true"},
        Rule{"nonpad", gqa, [](Scenario& s) { s.nonpad_kv_seqlen = true; }, "nonpad_kv_seqlen",
             "true", "leave it out for gqa"},
        Rule{"mask", gqa, [](Scenario& s) { s.mask.kind = MaskKind::boolean; }, "mask.kind",
             "boolean", "must be additive for gqa"},
        Rule{"block_without_window", gqa, [](Scenario& s) { s.cache.window_size.reset(); },
             "cache.window_size", "absent", "must be given for layout block"},
        Rule{"capacity_below_window", gqa, [](Scenario& s) { s.cache.capacity = 3; },
             "cache.capacity", "3", "at least window_size (4); raise it or lower the window"},
        Rule{"queries_differ", gqa,
             [](Scenario& s) {
               std::get<Append>(s.steps[0]).queries = {3, 1};
             },
             "steps[0].queries", "[3, 1]", "equal the appended tokens"}),
    [](const auto& rule) { return rule.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Attention, ValidateRule,
    testing::Values(
        Rule{"opset", attention, [](Scenario& s) { s.opset = 26; }, "opset", "26", "23, 24 or 25"},
        Rule{"layout", attention, [](Scenario& s) { s.cache.layout = LayoutKind::block; },
             "cache.layout", "block", "must be full"},
        Rule{"window", attention, [](Scenario& s) { s.cache.window_size = 4; }, "cache.window_size",
             "4", "from opset 25 on"},
        Rule{"share_buffers", attention, [](Scenario& s) { s.share_buffers = false; },
             "share_buffers", "false", "leave it out for attention"},
        Rule{"capacity", attention, [](Scenario& s) { s.cache.capacity = 9; }, "cache.capacity",
             "9", "must be left out"},
        Rule{"nonpad_opset", nonpad, [](Scenario& s) { s.opset = 23; }, "opset", "23",
             "at least 24 with nonpad_kv_seqlen"},
        Rule{"nonpad_capacity", nonpad, [](Scenario& s) { s.cache.capacity = 0; }, "cache.capacity",
             "0", "must be given with nonpad_kv_seqlen"},
        Rule{"ragged_queries", attention,
             [](Scenario& s) {
               std::get<Append>(s.steps[1]).queries = {3, 2};
             },
             "steps[1].queries", "[3, 2]", "the same for every batch entry"},
        Rule{"ragged_tokens", attention,
             [](Scenario& s) {
               std::get<Append>(s.steps[1]).tokens = {1, 2};
             },
             "steps[1].append", "[1, 2]", "the same for every batch entry"},
        Rule{"ragged_past", attention,
             [](Scenario& s) {
               std::get<Past>(s.steps[0]).tokens = {1, 2};
             },
             "steps[0].past", "[1, 2]", "the same for every batch entry"},
        Rule{"ragged_rollback", attention,
             [](Scenario& s) {
               std::get<Rollback>(s.steps[2]).tokens = {1, 2};
             },
             "steps[2].rollback", "[1, 2]", "the same for every batch entry"},
        Rule{"ragged_nonpad_queries", nonpad,
             [](Scenario& s) {
               std::get<Append>(s.steps[0]).queries = {1, 2};
             },
             "steps[0].queries", "[1, 2]", "the same for every batch entry"},
        Rule{"ragged_mask", nonpad,
             [](Scenario& s) {
               s.mask.kind = MaskKind::boolean;
               s.mask.rank = 3;
             },
             "mask.rank", "3",
             "must be 4, without one_entry, where batch entries differ in length"}),
    [](const auto& rule) { return rule.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Steps, ValidateRule,
    testing::Values(Rule{"short_list", gqa,
                         [](Scenario& s) { std::get<Append>(s.steps[1]).tokens = {1}; },
                         "steps[1].append", "1", "one for each of the 2 batch entries"},
                    Rule{"short_queries", gqa,
                         [](Scenario& s) {
                           std::get<Append>(s.steps[1]).queries = {1, 1, 1};
                         },
                         "steps[1].queries", "3", "one for each of the 2 batch entries"},
                    Rule{"negative_tokens", gqa,
                         [](Scenario& s) {
                           std::get<Append>(s.steps[1]).tokens = {1, -1};
                         },
                         "steps[1].append", "-1", "between 0 and 2147483647"},
                    Rule{"huge_tokens", gqa,
                         [](Scenario& s) {
                           std::get<Append>(s.steps[1]).tokens = {kHuge, 1};
                         },
                         "steps[1].append", "9223372036854775807", "between 0 and 2147483647"},
                    Rule{"negative_queries", nonpad,
                         [](Scenario& s) {
                           std::get<Append>(s.steps[1]).queries = {-2, -2};
                         },
                         "steps[1].queries", "-2", "between 0 and 2147483647"},
                    Rule{"negative_generation", gqa,
                         [](Scenario& s) { std::get<Append>(s.steps[1]).generation = -1; },
                         "steps[1].generation", "-1", "at least 0"},
                    Rule{"no_tokens", gqa,
                         [](Scenario& s) {
                           s.steps[1] = (Append{{0, 0}, {0, 0}, 0});
                         },
                         "steps[1].append", "0", "at least one token, or ask queries"},
                    Rule{"attention_no_tokens", attention,
                         [](Scenario& s) {
                           s.steps[0] = (Append{{0, 0}, {1, 1}, 0});
                         },
                         "steps[0].append", "0", "at least one token"},
                    Rule{"nonpad_idle", nonpad,
                         [](Scenario& s) {
                           s.steps[1] = (Append{{0, 0}, {0, 0}, 0});
                         },
                         "steps[1].append", "0", "at least one token"},
                    Rule{"late_past", gqa,
                         [](Scenario& s) {
                           s.steps[1] = (Past{{7, 7}});
                         },
                         "steps[1].past", "7", "must be the first step"},
                    Rule{"empty_past", gqa,
                         [](Scenario& s) {
                           s.steps[0] = (Past{{0, 0}});
                         },
                         "steps[0].past", "0", "at least one token; remove the step"},
                    Rule{"past_list", gqa, [](Scenario& s) { s.steps[0] = (Past{{}}); },
                         "steps[0].past", "0", "one for each of the 2 batch entries"},
                    Rule{"negative_past", gqa,
                         [](Scenario& s) {
                           s.steps[0] = (Past{{1, -5}});
                         },
                         "steps[0].past", "-5", "between 0 and"},
                    Rule{"no_rollback", gqa,
                         [](Scenario& s) {
                           std::get<Rollback>(s.steps[2]).tokens = {0, 0};
                         },
                         "steps[2].rollback", "0", "remove the step"},
                    Rule{"deep_rollback", gqa,
                         [](Scenario& s) {
                           std::get<Rollback>(s.steps[2]).tokens = {1, 4};
                         },
                         "steps[2].rollback", "4", "at most the 3 tokens that entry 1 holds"},
                    Rule{"negative_rollback", gqa,
                         [](Scenario& s) {
                           std::get<Rollback>(s.steps[2]).tokens = {-1, 1};
                         },
                         "steps[2].rollback", "-1", "between 0 and"},
                    Rule{"beyond_capacity", nonpad, [](Scenario& s) { s.cache.capacity = 4; },
                         "steps[0]", "5", "stay within cache.capacity (4); raise it"},
                    Rule{"beyond_length", gqa,
                         [](Scenario& s) {
                           s.steps[0] = (Past{{kMaxLength, kMaxLength}});
                         },
                         "steps[1]", "2147483648", "stay within 2147483647"},
                    Rule{"wide_capacity", gqa, [](Scenario& s) { s.cache.capacity = kMaxLength; },
                         "cache.capacity", "2147483647", "at most 4194304 rows"},
                    Rule{"wide_step", gqa,
                         [](Scenario& s) {
                           s.steps[0] = (Append{{5000000, 1}, {5000000, 1}, 0});
                         },
                         "steps", "5000000", "at most 4194304 rows"},
                    Rule{"wide_row", attention,
                         [](Scenario& s) {
                           s.query_heads = s.kv_heads = s.head_size = kMaxShape;
                           s.batch = 4096;
                           s.steps = {Append{Counts(4096, 1), Counts(4096, 1), 0}};
                         },
                         "cache.capacity", "1", "at most 0 rows"},
                    Rule{"wide_mask", attention,
                         [](Scenario& s) {
                           s.mask.kind = MaskKind::boolean;
                           s.mask.rank = 4;
                           s.steps = {Append{{16384, 16384}, {16384, 16384}, 0}};
                         },
                         "mask.rank", "4",
                         "the mask of the longest step exceeds 268435456 elements"}),
    [](const auto& rule) { return rule.param.name; });

TEST(Validate, NamesEveryBrokenRuleOfTheShape) {
  Scenario s = gqa();
  s.opset = 7;
  s.causal = false;
  s.cache.capacity = 3;
  EXPECT_EQ(validate(s).size(), 3u);
}

TEST(Validate, TakesTheLimitsThemselves) {
  Scenario s;
  s.cache = {LayoutKind::block, 1, 1};
  s.head_size = s.value_head_size = 1;
  s.steps = {Past{{kMaxLength - 1}}, Append{{1}, {1}, 0}, Rollback{{kMaxLength}}};
  EXPECT_TRUE(validate(s).empty());
  s.cache = {LayoutKind::block, kMaxElements, kMaxElements};
  EXPECT_TRUE(validate(s).empty());
  s.cache.capacity += 1;
  EXPECT_FALSE(validate(s).empty());
  s = Scenario{};
  s.batch = s.query_heads = s.kv_heads = kMaxShape;
  s.head_size = s.value_head_size = 16;
  s.steps = {Append{Counts(4096, 1), Counts(4096, 1), 0}};
  EXPECT_TRUE(validate(s).empty());
}

TEST(Validate, TakesAppendsWithoutQueriesAndIdleEntries) {
  Scenario s = gqa();
  s.steps = {Append{{3, 2}, {0, 0}, 0}, Append{{0, 1}, {0, 1}, 0}};
  EXPECT_TRUE(validate(s).empty());
}

}  // namespace
}  // namespace kvcheck::model
