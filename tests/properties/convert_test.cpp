// What a target claims decides what it is given.
#include "properties/convert.h"

#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "kernels/cpu/naive/cpu_naive.h"
#include "model/scenario_json.h"

namespace kvcheck::properties {
namespace {

kernels::Capabilities modest() {
  kernels::Capabilities c;
  c.operators = {"gqa", "attention"};
  c.opsets = {23};
  c.element_types = {"f32"};
  c.layouts = {"full", "block"};
  c.head_size_multiple = 8;
  return c;
}

std::string reason(const char* text) {
  return unsupported_reason(modest(), model::parse_scenario(text));
}

TEST(UnsupportedReason, NamesTheFirstFieldThatIsNotClaimed) {
  EXPECT_EQ(reason(R"({"schema":1,"operator":"gqa","steps":[{"append":3},{"append":1}]})"), "");
  EXPECT_EQ(reason(R"({"schema":1,"operator":"gqa","element_type":"f16","steps":[{"append":1}]})"),
            "element_type f16");
  EXPECT_EQ(reason(R"({"schema":1,"operator":"gqa","head_size":4,"steps":[{"append":1}]})"),
            "head_size 4 (a multiple of 8 is needed)");
  EXPECT_EQ(reason(R"({"schema":1,"operator":"attention","opset":24,"steps":[{"append":1}]})"),
            "opset 24");
}

TEST(UnsupportedReason, LeavesLayoutsWhoseRowsAreNotInOrderToTheModel) {
  kernels::Capabilities bold = modest();
  bold.layouts.insert("ring");
  const auto ring = model::parse_scenario(R"({"schema":1,"operator":"gqa",
      "cache":{"layout":"ring","capacity":4,"window_size":2},"steps":[{"append":1}]})");
  EXPECT_EQ(unsupported_reason(bold, ring),
            "cache.layout ring (only the model answers for it so far)");
  EXPECT_EQ(unsupported_reason(modest(), ring), "cache.layout ring");
}

TEST(UnsupportedReason, NamesTheFeatureThatAStepNeeds) {
  EXPECT_EQ(reason(R"({"schema":1,"operator":"gqa","steps":[{"past":2},{"append":1}]})"), "load");
  EXPECT_EQ(reason(R"({"schema":1,"operator":"gqa","steps":[{"append":2},{"rollback":1}]})"),
            "rollback");
  EXPECT_EQ(reason(R"({"schema":1,"operator":"gqa","batch":2,"steps":[{"append":[2,3]}]})"),
            "ragged_prompt");
  EXPECT_EQ(reason(R"({"schema":1,"operator":"gqa","batch":2,
                       "steps":[{"append":2},{"append":2}]})"),
            "batched_chunks");
  EXPECT_EQ(reason(R"({"schema":1,"operator":"gqa","batch":2,
                       "steps":[{"append":2},{"append":1}]})"),
            "");
  EXPECT_EQ(reason(R"({"schema":1,"operator":"gqa","batch":2,
                       "steps":[{"append":1},{"append":[1,0]}]})"),
            "idle_entries");
  EXPECT_EQ(reason(R"({"schema":1,"operator":"attention","opset":23,
                       "steps":[{"append":2,"queries":1}]})"),
            "queries_differ");
  EXPECT_EQ(reason(R"({"schema":1,"operator":"gqa","steps":[{"append":2,"queries":0}]})"),
            "queryless_append");
}

TEST(UnsupportedReason, NamesEveryFeatureOfTheOperatorsThatIsNotClaimed) {
  const std::string kAlone = " (only the model answers for it so far)";
  const std::pair<const char*, std::string> gqa[] = {
      {R"("causal":false)", "bidirectional"},
      {R"("cache":{"window_size":0})", "empty_window"},
      {R"("mask":{"kind":"additive","rank":4})", "attention_bias"},
      {R"("packed_qkv":true)", "packed_qkv" + kAlone},
      {R"("softcap":2)", "softcap" + kAlone},
      {R"("smooth_softmax":true)", "smooth_softmax" + kAlone},
      {R"("head_sink":true)", "head_sink" + kAlone},
      {R"("rotary":{})", "rotary" + kAlone},
      {R"("qk_norm":{})", "qk_norm" + kAlone},
      {R"("qk_output":"biased")", "qk_output" + kAlone},
      {R"("cache":{"quantisation":{"kind":"int4"}})", "cache.quantisation int4" + kAlone},
  };
  for (const auto& [field, feature] : gqa) {
    const std::string text =
        R"({"schema":1,"operator":"gqa",)" + std::string(field) + R"(,"steps":[{"append":2}]})";
    EXPECT_EQ(reason(text.c_str()), feature) << field;
  }
  const std::pair<const char*, std::string> attention[] = {
      {R"("softcap":2)", "softcap" + kAlone},
      {R"("input_rank":3)", "input_rank 3" + kAlone},
      {R"("softmax_precision":"f64")", "softmax_precision" + kAlone},
      {R"("mask":{"kind":"boolean","rank":1})", "mask_boolean"},
      {R"("qk_output":"raw")", "qk_output" + kAlone},
  };
  for (const auto& [field, feature] : attention) {
    const std::string text = R"({"schema":1,"operator":"attention","opset":23,)" +
                             std::string(field) + R"(,"steps":[{"append":2}]})";
    EXPECT_EQ(reason(text.c_str()), feature) << field;
  }
  EXPECT_EQ(reason(R"({"schema":1,"operator":"gqa","steps":[{"append":2},
                       {"append":0,"queries":1}]})"),
            "shared_kv");
}

TEST(ArithmeticProfile, ScalesToDoubleAndFollowsTheOperatorAndType) {
  kernels::Capabilities c = modest();
  c.arithmetic_where["attention f16"].probability_roundoff = 0x1p-11;
  auto s = model::parse_scenario(
      R"({"schema":1,"operator":"attention","opset":23,"steps":[{"append":1}]})");
  EXPECT_EQ(arithmetic_profile(c, s).accumulator_roundoff, 0x1p-24);
  EXPECT_EQ(arithmetic_profile(c, s).probability_roundoff, 0);
  s.element_type = model::ElementType::f16;
  EXPECT_EQ(arithmetic_profile(c, s).probability_roundoff, 0x1p-11);
  EXPECT_EQ(arithmetic_profile(c, s).output_type, model::ElementType::f16);
  s.element_type = model::ElementType::f64;
  EXPECT_EQ(arithmetic_profile(c, s).accumulator_roundoff, 0x1p-53);
}

TEST(SessionConfig, CarriesTheScenario) {
  const auto s = model::parse_scenario(R"({"schema":1,"operator":"gqa","batch":2,"query_heads":4,
      "kv_heads":2,"head_size":16,"cache":{"layout":"block","capacity":6,"window_size":4},
      "share_buffers":false,"scale":0.5,"steps":[{"append":1}]})");
  const auto config = session_config(s, model::Timeline(s), 7.5);
  EXPECT_EQ(config.op, "gqa");
  EXPECT_EQ(config.batch, 2);
  EXPECT_EQ(config.query_heads, 4);
  EXPECT_EQ(config.value_head_size, 16);
  EXPECT_EQ(config.layout, "block");
  EXPECT_EQ(config.capacity, 6);
  EXPECT_EQ(config.window_size, 4);
  EXPECT_FALSE(config.share_buffers);
  EXPECT_EQ(config.scale, 0.5);
  EXPECT_EQ(config.initial_poison, 7.5);
}

TEST(BearsNan, HoldsForGqaAloneWhereOnlyThatIsPromised) {
  kernels::Capabilities c = modest();
  model::Scenario gqa, attention;
  attention.op = model::Operator::attention;
  EXPECT_FALSE(bears_nan(c, gqa));
  c.features.insert("nan_safe_gqa");
  EXPECT_TRUE(bears_nan(c, gqa));
  EXPECT_FALSE(bears_nan(c, attention));
}

}  // namespace
}  // namespace kvcheck::properties
