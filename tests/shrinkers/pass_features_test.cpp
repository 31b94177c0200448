// The pass over optional features: what a failure does not need goes, what it needs stays, and the
// fields that reports show name every one of them.
#include <algorithm>
#include <functional>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "model/scenario_json.h"
#include "shrinkers/fields.h"
#include "shrinkers/passes.h"
#include "tests/shrinkers/random_scenario.h"
#include "tests/shrinkers/run_pass.h"

namespace kvcheck::shrinkers {
namespace {

using model::Append;
using model::MaskKind;
using model::Operator;
using model::PositionIds;
using model::QkOutput;
using model::QuantisationKind;
using model::RotarySpec;
using model::Scenario;
using testing::after;
using testing::always;
using testing::plain_scenario;

Scenario plain() {
  Scenario s = plain_scenario({Append{{4}, {4}, 0}});
  s.head_size = s.value_head_size = 8;
  return s;
}

Scenario plain_attention() {
  Scenario s = plain();
  s.op = Operator::attention;
  s.opset = 25;
  return s;
}

Scenario every_gqa_feature() {
  Scenario s = plain();
  s.cache.quantisation = {QuantisationKind::int4, true};
  s.rotary = RotarySpec{true, 4, PositionIds{5, 2, 3}};
  s.qk_norm = model::QkNormSpec{1e-3};
  s.softcap = 20;
  s.head_sink = s.smooth_softmax = s.packed_qkv = true;
  s.qk_output = QkOutput::biased;
  s.mask = {MaskKind::additive, 4};
  s.mask.one_entry = s.mask.one_head = true;
  s.launch =
      model::LaunchSpec{model::LaunchOrder::random, 7, model::LaunchKernel::prefill, 64, 128};
  return s;
}

Scenario every_attention_feature() {
  Scenario s = plain_attention();
  s.softcap = 20;
  s.qk_output = QkOutput::raw;
  s.right_window_size = 2;
  s.input_rank = 3;
  s.softmax_precision = model::ElementType::f64;
  s.mask = {MaskKind::additive, 4};
  s.mask.one_entry = s.mask.one_head = s.mask.one_query = true;
  s.mask.missing_columns = 1;
  return s;
}

/// A mask alone: the pass takes what surrounds it, not the mask itself.
Scenario masked(Scenario s) {
  s.mask = {MaskKind::additive, 4};
  return s;
}

/// A feature, and the smallest scenario that has it.
struct Feature {
  std::string name;
  Scenario all;  ///< Every feature of the operator.
  std::function<bool(const Scenario&)> needed;
  std::function<void(Scenario&)> kept;  ///< Of a plain masked scenario.
};

void PrintTo(const Feature& feature, std::ostream* out) { *out << feature.name; }

std::vector<Feature> gqa_features() {
  const Scenario all = every_gqa_feature();
  return {
      {"quantisation", all,
       [](const Scenario& s) { return s.cache.quantisation.kind != QuantisationKind::none; },
       [](Scenario& s) { s.cache.quantisation.kind = QuantisationKind::int4; }},
      {"per_channel", all, [](const Scenario& s) { return s.cache.quantisation.per_channel; },
       [](Scenario& s) {
         s.cache.quantisation = {QuantisationKind::int4, true};
       }},
      {"rotary", all, [](const Scenario& s) { return s.rotary.has_value(); },
       [](Scenario& s) { s.rotary = RotarySpec{}; }},
      {"interleaved", all, [](const Scenario& s) { return s.rotary && s.rotary->interleaved; },
       [](Scenario& s) {
         s.rotary = RotarySpec{true, 0, {}};
       }},
      {"rotary_dim", all, [](const Scenario& s) { return s.rotary && s.rotary->dim == 4; },
       [](Scenario& s) {
         s.rotary = RotarySpec{false, 4, {}};
       }},
      {"position_ids", all, [](const Scenario& s) { return s.rotary && s.rotary->position_ids; },
       [](Scenario& s) {
         s.rotary = RotarySpec{false, 0, PositionIds{}};
       }},
      {"stride", all,
       [](const Scenario& s) {
         return s.rotary && s.rotary->position_ids && s.rotary->position_ids->stride == 2;
       },
       [](Scenario& s) {
         s.rotary = RotarySpec{false, 0, PositionIds{0, 2, 0}};
       }},
      {"shift", all,
       [](const Scenario& s) {
         return s.rotary && s.rotary->position_ids && s.rotary->position_ids->shift > 0;
       },
       [](Scenario& s) {
         s.rotary = RotarySpec{false, 0, PositionIds{5, 1, 0}};
       }},
      {"extra_columns", all,
       [](const Scenario& s) {
         return s.rotary && s.rotary->position_ids && s.rotary->position_ids->extra_columns > 0;
       },
       [](Scenario& s) {
         s.rotary = RotarySpec{false, 0, PositionIds{0, 1, 3}};
       }},
      {"qk_norm", all, [](const Scenario& s) { return s.qk_norm.has_value(); },
       [](Scenario& s) { s.qk_norm = model::QkNormSpec{1e-3}; }},
      {"softcap", all, [](const Scenario& s) { return s.softcap > 0; },
       [](Scenario& s) { s.softcap = 20; }},
      {"head_sink", all, [](const Scenario& s) { return s.head_sink; },
       [](Scenario& s) { s.head_sink = true; }},
      {"smooth_softmax", all, [](const Scenario& s) { return s.smooth_softmax; },
       [](Scenario& s) { s.smooth_softmax = true; }},
      {"qk_output", all, [](const Scenario& s) { return s.qk_output != QkOutput::none; },
       [](Scenario& s) { s.qk_output = QkOutput::biased; }},
      {"packed_qkv", all, [](const Scenario& s) { return s.packed_qkv; },
       [](Scenario& s) { s.packed_qkv = true; }},
      {"launch_order", all,
       [](const Scenario& s) { return s.launch && s.launch->order == model::LaunchOrder::random; },
       [](Scenario& s) {
         s.launch =
             model::LaunchSpec{model::LaunchOrder::random, 0, model::LaunchKernel::any, 0, 0};
       }},
      {"launch_order_but_lockstep", all,
       [](const Scenario& s) {
         return s.launch && s.launch->order != model::LaunchOrder::lockstep;
       },
       [](Scenario& s) {
         s.launch =
             model::LaunchSpec{model::LaunchOrder::reverse, 0, model::LaunchKernel::any, 0, 0};
       }},
      {"launch_seed", all, [](const Scenario& s) { return s.launch && s.launch->seed == 7; },
       [](Scenario& s) {
         s.launch =
             model::LaunchSpec{model::LaunchOrder::reverse, 7, model::LaunchKernel::any, 0, 0};
       }},
      {"launch_kernel", all,
       [](const Scenario& s) {
         return s.launch && s.launch->kernel == model::LaunchKernel::prefill;
       },
       [](Scenario& s) {
         s.launch =
             model::LaunchSpec{model::LaunchOrder::lockstep, 0, model::LaunchKernel::prefill, 0, 0};
       }},
      {"launch_threads", all, [](const Scenario& s) { return s.launch && s.launch->threads == 64; },
       [](Scenario& s) {
         s.launch =
             model::LaunchSpec{model::LaunchOrder::lockstep, 0, model::LaunchKernel::any, 64, 0};
       }},
      {"launch_split", all,
       [](const Scenario& s) { return s.launch && s.launch->split_positions == 128; },
       [](Scenario& s) {
         s.launch =
             model::LaunchSpec{model::LaunchOrder::lockstep, 0, model::LaunchKernel::any, 0, 128};
       }},
      {"one_entry", all, [](const Scenario& s) { return s.mask.one_entry; },
       [](Scenario& s) { s.mask.one_entry = true; }},
      {"one_head", all, [](const Scenario& s) { return s.mask.one_head; },
       [](Scenario& s) { s.mask.one_head = true; }},
  };
}

std::vector<Feature> attention_features() {
  const Scenario all = every_attention_feature();
  return {
      {"attention_softcap", all, [](const Scenario& s) { return s.softcap > 0; },
       [](Scenario& s) { s.softcap = 20; }},
      {"attention_qk_output", all, [](const Scenario& s) { return s.qk_output == QkOutput::raw; },
       [](Scenario& s) { s.qk_output = QkOutput::raw; }},
      {"right_window", all, [](const Scenario& s) { return s.right_window_size.has_value(); },
       [](Scenario& s) { s.right_window_size = 2; }},
      {"input_rank", all, [](const Scenario& s) { return s.input_rank == 3; },
       [](Scenario& s) { s.input_rank = 3; }},
      {"softmax_precision", all, [](const Scenario& s) { return s.softmax_precision.has_value(); },
       [](Scenario& s) { s.softmax_precision = model::ElementType::f64; }},
      {"one_query", all, [](const Scenario& s) { return s.mask.one_query; },
       [](Scenario& s) { s.mask.one_query = true; }},
      {"missing_columns", all, [](const Scenario& s) { return s.mask.missing_columns > 0; },
       [](Scenario& s) { s.mask.missing_columns = 1; }},
  };
}

class FeaturePass : public ::testing::TestWithParam<Feature> {};

TEST_P(FeaturePass, KeepsTheOneFeatureThatTheFailureNeeds) {
  const Feature& feature = GetParam();
  ASSERT_TRUE(feature.needed(feature.all));
  Scenario wanted = masked(feature.all.op == Operator::gqa ? plain() : plain_attention());
  EXPECT_FALSE(feature.needed(wanted));
  feature.kept(wanted);
  EXPECT_EQ(difference(after(shrink_features, feature.all, feature.needed), wanted), "");
  EXPECT_TRUE(after(shrink_features, feature.all, feature.needed) == wanted);
}

TEST_P(FeaturePass, DropsItWhereTheFailureDoesNot) {
  const Feature& feature = GetParam();
  const Scenario bare = masked(feature.all.op == Operator::gqa ? plain() : plain_attention());
  Scenario alone = bare;
  feature.kept(alone);
  EXPECT_TRUE(after(shrink_features, alone, always) == bare);
}

TEST_P(FeaturePass, AndTheFieldsNameIt) {
  const Feature& feature = GetParam();
  const Scenario bare = masked(feature.all.op == Operator::gqa ? plain() : plain_attention());
  Scenario alone = bare;
  feature.kept(alone);
  EXPECT_NE(difference(bare, alone), "");
  EXPECT_NE(difference(alone, bare), "");
}

std::string feature_name(const ::testing::TestParamInfo<Feature>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Gqa, FeaturePass, ::testing::ValuesIn(gqa_features()), feature_name);
INSTANTIATE_TEST_SUITE_P(Attention, FeaturePass, ::testing::ValuesIn(attention_features()),
                         feature_name);

/// What the pass tries when everything it tries passes, in order.
std::vector<std::string> tried(const Scenario& start) {
  std::vector<std::string> names;
  after(shrink_features, start, [&](const Scenario& candidate) {
    names.push_back(changed_fields(start, candidate).front());
    return false;
  });
  return names;
}

TEST(FeatureOrder, BeginsWithWhatTakesMostAway) {
  EXPECT_EQ(tried(every_gqa_feature()),
            (std::vector<std::string>{"cache.quantisation.kind",
                                      "cache.quantisation.per_channel",
                                      "rotary.dim",
                                      "rotary.position_ids.stride",
                                      "rotary.interleaved",
                                      "rotary.dim",
                                      "rotary.position_ids.extra_columns",
                                      "rotary.position_ids.shift",
                                      "rotary.position_ids.stride",
                                      "qk_norm.epsilon",
                                      "softcap",
                                      "head_sink",
                                      "smooth_softmax",
                                      "qk_output",
                                      "packed_qkv",
                                      "mask.one_entry",
                                      "mask.one_head",
                                      "launch.order",
                                      "launch.threads",
                                      "launch.split_positions",
                                      "launch.kernel",
                                      "launch.order",
                                      "launch.order",
                                      "launch.seed"}));
  EXPECT_EQ(tried(every_attention_feature()),
            (std::vector<std::string>{"softcap", "qk_output", "right_window_size", "input_rank",
                                      "softmax_precision", "mask.missing_columns", "mask.one_entry",
                                      "mask.one_head", "mask.one_query"}));
  EXPECT_TRUE(tried(plain()).empty());
}

/// Names of all values in the JSON form but the steps', as "rotary.position_ids.shift".
void collect(const nlohmann::ordered_json& json, const std::string& path,
             std::set<std::string>& names) {
  for (const auto& [key, value] : json.items()) {
    const std::string name = path.empty() ? key : path + "." + key;
    if (value.is_object()) {
      collect(value, name, names);
    } else {
      names.insert(name);
    }
  }
}

TEST(FeatureFields, NameEveryFieldOfTheJsonForm) {
  Scenario gqa = every_gqa_feature();
  gqa.fill.first_entry = 2;
  gqa.fill.sink_logit = 3;
  gqa.fill.index = 1;
  gqa.scale = 0.5;
  gqa.share_buffers = false;
  gqa.cache.capacity = 9;
  Scenario sinks = plain();
  sinks.cache = {model::LayoutKind::sinks, 9, 4, 2};
  Scenario paged = plain();
  paged.cache = {model::LayoutKind::paged, 8, 4, 0, 2};
  Scenario undirected = plain();
  undirected.causal = false;
  Scenario windowed = every_attention_feature();
  windowed.cache.window_size = 2;
  for (const Scenario& s : {gqa, sinks, paged, undirected, windowed, every_attention_feature()}) {
    ASSERT_TRUE(model::validate(s).empty());
    std::set<std::string> names;
    collect(to_json(s), "", names);
    for (const char* other : {"schema", "operator", "steps"}) names.erase(other);
    // The layout of attention is always full.
    if (s.op == Operator::attention) names.erase("cache.layout");
    for (const std::string& name : names) {
      EXPECT_NE(field_text(s, name), "") << name;
    }
  }
}

}  // namespace
}  // namespace kvcheck::shrinkers
