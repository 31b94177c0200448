// Each rule of an optional feature: one change to a valid scenario is refused by field and remedy,
// and repaired to the nearest valid value.
#include "model/scenario_features.h"

#include <functional>
#include <limits>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace kvcheck::model {
namespace {

using Edit = std::function<void(Scenario&)>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();

Scenario gqa() {
  Scenario s;
  s.query_heads = 2;
  s.steps = {Append{{3}, {3}, 0}, Append{{1}, {1}, 0}};
  return s;
}

Scenario windowed() {
  Scenario s = gqa();
  s.cache = {LayoutKind::block, 6, 4};
  return s;
}

Scenario biased() {
  Scenario s = gqa();
  s.mask = {MaskKind::additive, 4};
  return s;
}

Scenario turning() {
  Scenario s = gqa();
  s.rotary = RotarySpec{true, 6, PositionIds{1, 2, 3}};
  return s;
}

Scenario int8() {
  Scenario s = gqa();
  s.cache.quantisation = {QuantisationKind::int8, true};
  return s;
}

Scenario attention() {
  Scenario s = gqa();
  s.op = Operator::attention;
  s.opset = 25;
  return s;
}

Scenario masked() {
  Scenario s = attention();
  s.mask = {MaskKind::boolean, 4};
  return s;
}

struct Rule {
  std::string name;
  Scenario base;
  Edit change;
  std::string field;
  std::string remedy;  ///< All of it.
  Edit repaired;       ///< Of the base.
};

void PrintTo(const Rule& rule, std::ostream* out) { *out << rule.name; }

void nothing(Scenario&) {}

std::vector<Rule> logit_rules() {
  const std::string scale_gqa = "must be finite and not 0; leave it out for 1/sqrt(head_size)";
  const std::string scale_attention =
      "must be finite and above 0; leave it out for 1/sqrt(head_size)";
  const std::string softcap = "must be finite and at least 0; 0 is off";
  return {
      {"scale_zero", gqa(), [](Scenario& s) { s.scale = 0; }, "scale", scale_gqa, nothing},
      {"scale_nan", gqa(), [](Scenario& s) { s.scale = kNan; }, "scale", scale_gqa, nothing},
      {"scale_infinite", gqa(), [](Scenario& s) { s.scale = kInfinity; }, "scale", scale_gqa,
       nothing},
      {"scale_negative", attention(), [](Scenario& s) { s.scale = -1; }, "scale", scale_attention,
       nothing},
      {"scale_zero_attention", attention(), [](Scenario& s) { s.scale = 0; }, "scale",
       scale_attention, nothing},
      {"softcap_negative", gqa(), [](Scenario& s) { s.softcap = -1; }, "softcap", softcap, nothing},
      {"softcap_nan", attention(), [](Scenario& s) { s.softcap = kNan; }, "softcap", softcap,
       nothing},
      {"softcap_infinite", gqa(), [](Scenario& s) { s.softcap = kInfinity; }, "softcap", softcap,
       nothing},
  };
}

std::vector<Rule> gqa_rules() {
  const std::string foreign = "belongs to attention; leave it out for gqa";
  const std::string output = "must be none, biased or probabilities for gqa";
  return {
      {"causal_windowed", windowed(), [](Scenario& s) { s.causal = false; }, "causal",
       "must be true with cache.window_size: gqa has no window without causality", nothing},
      {"right_window_gqa", gqa(), [](Scenario& s) { s.right_window_size = 2; }, "right_window_size",
       foreign, nothing},
      {"input_rank_gqa", gqa(), [](Scenario& s) { s.input_rank = 3; }, "input_rank", foreign,
       nothing},
      {"launch_threads", gqa(), [](Scenario& s) { s.launch = LaunchSpec{.threads = 48}; },
       "launch.threads", "must be a multiple of 32 up to 1024; 0 = any",
       [](Scenario& s) { s.launch = LaunchSpec{.threads = 32}; }},
      {"launch_split", gqa(), [](Scenario& s) { s.launch = LaunchSpec{.split_positions = -1}; },
       "launch.split_positions", "must be between 0 and 2147483647; 0 = any",
       [](Scenario& s) { s.launch = LaunchSpec{}; }},
      {"softmax_precision_gqa", gqa(), [](Scenario& s) { s.softmax_precision = ElementType::f32; },
       "softmax_precision", foreign, nothing},
      {"qk_raw", gqa(), [](Scenario& s) { s.qk_output = QkOutput::raw; }, "qk_output", output,
       nothing},
      {"qk_softcapped", gqa(), [](Scenario& s) { s.qk_output = QkOutput::softcapped; }, "qk_output",
       output, nothing},
      {"qk_windowed_cache", windowed(), [](Scenario& s) { s.qk_output = QkOutput::biased; },
       "qk_output", "must be none unless cache.layout is full", nothing},
      {"quantised_f64", int8(), [](Scenario& s) { s.element_type = ElementType::f64; },
       "cache.quantisation.kind", "must be none for element_type f64",
       [](Scenario& s) {
         s.element_type = ElementType::f64;
         s.cache.quantisation = {};
       }},
      {"per_channel_of_nothing", int8(),
       [](Scenario& s) { s.cache.quantisation.kind = QuantisationKind::none; },
       "cache.quantisation.per_channel", "must be false where kind is none",
       [](Scenario& s) { s.cache.quantisation = {}; }},
      {"epsilon_zero", gqa(), [](Scenario& s) { s.qk_norm = QkNormSpec{0}; }, "qk_norm.epsilon",
       "must be finite and above 0", [](Scenario& s) { s.qk_norm = QkNormSpec{}; }},
      {"epsilon_nan", gqa(), [](Scenario& s) { s.qk_norm = QkNormSpec{kNan}; }, "qk_norm.epsilon",
       "must be finite and above 0", [](Scenario& s) { s.qk_norm = QkNormSpec{}; }},
  };
}

std::vector<Rule> rotary_rules() {
  const std::string dim = "must be even and at most head_size (8); 0 = the whole head, if even";
  const auto with_dim = [](std::int64_t lanes) {
    return [lanes](Scenario& s) { s.rotary->dim = lanes; };
  };
  return {
      {"rotary_odd", turning(), with_dim(5), "rotary.dim", dim, with_dim(4)},
      {"rotary_wide", turning(), with_dim(10), "rotary.dim", dim, with_dim(8)},
      {"rotary_negative", turning(), with_dim(-2), "rotary.dim", dim, with_dim(2)},
      {"rotary_one", turning(), with_dim(1), "rotary.dim", dim, with_dim(2)},
      {"rotary_huge", turning(), with_dim(kHuge), "rotary.dim", dim, with_dim(8)},
      {"rotary_odd_head", turning(),
       [](Scenario& s) {
         s.head_size = s.value_head_size = 7;
         s.rotary->dim = 0;
       },
       "rotary.dim", "must be even and at most head_size (7); 0 = the whole head, if even",
       [](Scenario& s) { s.head_size = s.value_head_size = 7; }},
      {"rotary_no_pair", turning(),
       [](Scenario& s) {
         s.head_size = s.value_head_size = 1;
         s.rotary->dim = 0;
       },
       "rotary.dim", "must be even and at most head_size (1); 0 = the whole head, if even",
       [](Scenario& s) {
         s.head_size = s.value_head_size = 1;
         s.rotary.reset();
       }},
      {"ids_shift", turning(), [](Scenario& s) { s.rotary->position_ids->shift = -1; },
       "rotary.position_ids.shift", "must be between 0 and 1048576",
       [](Scenario& s) { s.rotary->position_ids->shift = 0; }},
      {"ids_shift_huge", turning(), [](Scenario& s) { s.rotary->position_ids->shift = kHuge; },
       "rotary.position_ids.shift", "must be between 0 and 1048576",
       [](Scenario& s) { s.rotary->position_ids->shift = 1048576; }},
      {"ids_stride", turning(), [](Scenario& s) { s.rotary->position_ids->stride = 65; },
       "rotary.position_ids.stride", "must be between 0 and 64",
       [](Scenario& s) { s.rotary->position_ids->stride = 64; }},
      {"ids_columns", turning(), [](Scenario& s) { s.rotary->position_ids->extra_columns = 4097; },
       "rotary.position_ids.extra_columns", "must be between 0 and 4096",
       [](Scenario& s) { s.rotary->position_ids->extra_columns = 4096; }},
  };
}

std::vector<Rule> attention_rules() {
  const std::string foreign = "belongs to gqa; leave it out here";
  const auto opset_24 = [](Scenario& s) { s.opset = 24; };
  return {
      {"packed", attention(), [](Scenario& s) { s.packed_qkv = true; }, "packed_qkv", foreign,
       nothing},
      {"smooth", attention(), [](Scenario& s) { s.smooth_softmax = true; }, "smooth_softmax",
       foreign, nothing},
      {"sink", attention(), [](Scenario& s) { s.head_sink = true; }, "head_sink", foreign, nothing},
      {"rotary", attention(), [](Scenario& s) { s.rotary = RotarySpec{}; }, "rotary", foreign,
       nothing},
      {"norm", attention(), [](Scenario& s) { s.qk_norm = QkNormSpec{}; }, "qk_norm", foreign,
       nothing},
      {"quantised", attention(),
       [](Scenario& s) { s.cache.quantisation.kind = QuantisationKind::fp8; },
       "cache.quantisation.kind", "belongs to gqa; leave it out for attention", nothing},
      {"per_channel", attention(), [](Scenario& s) { s.cache.quantisation.per_channel = true; },
       "cache.quantisation.kind", "belongs to gqa; leave it out for attention", nothing},
      {"input_rank_low", attention(), [](Scenario& s) { s.input_rank = 2; }, "input_rank",
       "must be 3 or 4", [](Scenario& s) { s.input_rank = 3; }},
      {"input_rank_high", attention(), [](Scenario& s) { s.input_rank = 5; }, "input_rank",
       "must be 3 or 4", nothing},
      {"window_opset", attention(),
       [](Scenario& s) {
         s.opset = 24;
         s.cache.window_size = 3;
       },
       "cache.window_size",
       "belongs to gqa and to attention from opset 25 on; raise the opset or leave it out",
       opset_24},
      {"window_zero", attention(), [](Scenario& s) { s.cache.window_size = 0; },
       "cache.window_size",
       "must be at least 1 for attention: left_window_size counts the keys before it",
       [](Scenario& s) { s.cache.window_size = 1; }},
      {"right_window_opset", attention(),
       [](Scenario& s) {
         s.opset = 24;
         s.right_window_size = 3;
       },
       "right_window_size", "belongs to opset 25; raise the opset or leave it out", opset_24},
      {"right_window_negative", attention(), [](Scenario& s) { s.right_window_size = -1; },
       "right_window_size", "must be between 0 and 2147483647",
       [](Scenario& s) { s.right_window_size = 0; }},
      {"right_window_huge", attention(), [](Scenario& s) { s.right_window_size = kHuge; },
       "right_window_size", "must be between 0 and 2147483647",
       [](Scenario& s) { s.right_window_size = kMaxLength; }},
  };
}

std::vector<Rule> mask_rules() {
  const auto with_rank = [](int rank) { return [rank](Scenario& s) { s.mask.rank = rank; }; };
  return {
      {"mask_of_nothing", attention(), [](Scenario& s) { s.mask.empty_rows = true; }, "mask.kind",
       "must be boolean or additive where other fields of mask are given; leave mask out", nothing},
      {"mask_rank_zero", masked(), with_rank(0), "mask.rank", "must be between 1 and 4",
       with_rank(1)},
      {"mask_rank_five", masked(), with_rank(5), "mask.rank", "must be between 1 and 4", nothing},
      {"mask_percent", masked(), [](Scenario& s) { s.mask.hidden_percent = -1; },
       "mask.hidden_percent", "must be between 0 and 100",
       [](Scenario& s) { s.mask.hidden_percent = 0; }},
      {"mask_percent_high", masked(), [](Scenario& s) { s.mask.hidden_percent = 101; },
       "mask.hidden_percent", "must be between 0 and 100",
       [](Scenario& s) { s.mask.hidden_percent = 100; }},
      {"mask_one_entry", masked(),
       [](Scenario& s) {
         s.mask.rank = 3;
         s.mask.one_entry = true;
       },
       "mask.one_entry", "must be false unless mask.rank is 4", with_rank(3)},
      {"mask_one_head", masked(),
       [](Scenario& s) {
         s.mask.rank = 2;
         s.mask.one_head = true;
       },
       "mask.one_head", "must be false unless mask.rank is 3 or 4", with_rank(2)},
      {"mask_one_query", masked(),
       [](Scenario& s) {
         s.mask.rank = 1;
         s.mask.one_query = true;
       },
       "mask.one_query", "must be false unless mask.rank is at least 2", with_rank(1)},
      {"mask_columns", masked(), [](Scenario& s) { s.mask.missing_columns = -1; },
       "mask.missing_columns", "must be between 0 and 2147483647",
       [](Scenario& s) { s.mask.missing_columns = 0; }},
      {"mask_columns_opset", masked(),
       [](Scenario& s) {
         s.opset = 23;
         s.mask.missing_columns = 1;
       },
       "mask.missing_columns", "must be 0 before opset 24", [](Scenario& s) { s.opset = 23; }},
      {"bias_boolean", biased(), [](Scenario& s) { s.mask.kind = MaskKind::boolean; }, "mask.kind",
       "must be additive for gqa: it is attention_bias", [](Scenario& s) { s.mask = {}; }},
      {"bias_rank", biased(), with_rank(3), "mask.rank", "must be 4 for gqa", nothing},
      {"bias_one_query", biased(), [](Scenario& s) { s.mask.one_query = true; }, "mask.one_query",
       "must be false for gqa: attention_bias has a row for each query", nothing},
      {"bias_empty_rows", biased(), [](Scenario& s) { s.mask.empty_rows = true; },
       "mask.empty_rows", "must be false for gqa: its operator leaves such rows open", nothing},
      {"bias_columns", biased(), [](Scenario& s) { s.mask.missing_columns = 2; },
       "mask.missing_columns", "must be 0 for gqa: attention_bias has a column for each key",
       nothing},
  };
}

std::vector<Rule> fill_rules() {
  const std::string index = "must be 0, or for the position fills the digit or block, at least 0";
  const auto position = [](std::int64_t at) {
    return [at](Scenario& s) { s.fill = {FillKind::position_block, 0, at}; };
  };
  const auto first_entry = [](std::int64_t first) {
    return [first](Scenario& s) { s.fill.first_entry = first; };
  };
  const auto sink_logit = [](double logit) {
    return [logit](Scenario& s) { s.fill.sink_logit = logit; };
  };
  const auto with_sink = [] {
    Scenario s = gqa();
    s.head_sink = true;
    return s;
  };
  return {
      {"fill_index", gqa(), [](Scenario& s) { s.fill.index = 1; }, "fill.index", index, nothing},
      {"fill_index_negative", gqa(), position(-1), "fill.index", index, position(0)},
      {"fill_index_huge", gqa(), position(kMaxLength + 1), "fill.index", index,
       position(kMaxLength)},
      {"first_entry_negative", gqa(), first_entry(-1), "fill.first_entry",
       "must be between 0 and 4096", nothing},
      {"first_entry_huge", gqa(), first_entry(4097), "fill.first_entry",
       "must be between 0 and 4096", first_entry(4096)},
      {"sink_logit_huge", with_sink(), sink_logit(65), "fill.sink_logit",
       "must be between -64 and 64", sink_logit(64)},
      {"sink_logit_alone", gqa(), sink_logit(1), "fill.sink_logit", "must be 0 without head_sink",
       nothing},
      {"first_entry_literal", gqa(),
       [](Scenario& s) {
         s.fill.kind = FillKind::literal;
         s.fill.first_entry = 1;
       },
       "fill.first_entry", "must be 0 for a literal fill",
       [](Scenario& s) { s.fill.kind = FillKind::literal; }},
  };
}

std::vector<Rule> all_rules() {
  std::vector<Rule> all;
  for (const auto& rules : {logit_rules(), gqa_rules(), rotary_rules(), attention_rules(),
                            mask_rules(), fill_rules()}) {
    all.insert(all.end(), rules.begin(), rules.end());
  }
  return all;
}

class FeatureRule : public testing::TestWithParam<Rule> {};

TEST_P(FeatureRule, RefusesOneChangeByFieldAndRemedy) {
  const Rule& rule = GetParam();
  ASSERT_TRUE(feature_refusals(rule.base).empty());
  Scenario s = rule.base;
  rule.change(s);
  const auto refusals = feature_refusals(s);
  ASSERT_FALSE(refusals.empty());
  EXPECT_EQ(refusals.size(), 1u) << refusals.back().message();
  EXPECT_EQ(refusals.front().field, rule.field);
  EXPECT_EQ(refusals.front().remedy, rule.remedy);
  EXPECT_FALSE(refusals.front().value.empty());
}

TEST_P(FeatureRule, IsRepairedToTheNearestValidValue) {
  const Rule& rule = GetParam();
  Scenario s = rule.base;
  rule.change(s);
  repair_features(s);
  Scenario wanted = rule.base;
  rule.repaired(wanted);
  EXPECT_TRUE(s == wanted);
  EXPECT_TRUE(feature_refusals(s).empty());
}

TEST_P(FeatureRule, LeavesTheValidBaseAlone) {
  Scenario s = GetParam().base;
  repair_features(s);
  EXPECT_TRUE(s == GetParam().base);
}

INSTANTIATE_TEST_SUITE_P(All, FeatureRule, testing::ValuesIn(all_rules()),
                         [](const auto& rule) { return rule.param.name; });

TEST(Features, TakeTheLimitsThemselves) {
  Scenario s = turning();
  s.rotary->dim = 8;
  s.rotary->position_ids = PositionIds{1 << 20, 64, 4096};
  s.scale = -0.5;
  s.qk_norm = QkNormSpec{5e-324};
  s.fill.first_entry = 4096;
  EXPECT_TRUE(feature_refusals(s).empty());
  s = masked();
  s.mask = {MaskKind::additive, 4, 100, 1, true, true, true, true, kMaxLength};
  s.cache.window_size = 1;
  s.right_window_size = kMaxLength;
  s.input_rank = 3;
  EXPECT_TRUE(feature_refusals(s).empty());
}

TEST(Features, OfAWindowlessGqaMayBeNonCausal) {
  Scenario s = gqa();
  s.causal = false;
  EXPECT_TRUE(feature_refusals(s).empty());
  repair_features(s);
  EXPECT_FALSE(s.causal);
}

TEST(Features, OfALayoutThatWillGetAWindowAreRepairedToCausal) {
  Scenario s = windowed();
  s.causal = false;
  s.cache.window_size.reset();
  repair_features(s);
  EXPECT_TRUE(s.causal);
}

}  // namespace
}  // namespace kvcheck::model
