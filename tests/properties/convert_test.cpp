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

TEST(UnsupportedReason, NamesPoisonThatTheTargetDoesNotPromiseToBear) {
  const auto poisoned = [](const char* op) {
    return model::parse_scenario(std::string(R"({"schema":1,"poison":"nan","operator":)") + op +
                                 R"(,"steps":[{"append":1}]})");
  };
  const auto gqa = poisoned(R"("gqa")"), attention = poisoned(R"("attention","opset":23)");
  kernels::Capabilities target = modest();
  EXPECT_EQ(unsupported_reason(target, gqa), "poison nan");
  target.features = {"nan_safe_gqa"};
  EXPECT_EQ(unsupported_reason(target, gqa), "");
  EXPECT_EQ(unsupported_reason(target, attention), "poison nan");
  target.features = {"nan_safe"};
  EXPECT_EQ(unsupported_reason(target, attention), "");
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
  const std::pair<std::string, const char*> gqa[] = {
      {R"("causal":false)", "bidirectional"},
      {R"("cache":{"window_size":0})", "empty_window"},
      {R"("mask":{"kind":"additive","rank":4})", "attention_bias"},
      {R"("packed_qkv":true)", "packed_qkv"},
      {R"("softcap":2)", "softcap"},
      {R"("smooth_softmax":true)", "smooth_softmax"},
      {R"("head_sink":true)", "head_sink"},
      {R"("rotary":{})", "rotary"},
      {R"("qk_norm":{})", "qk_norm"},
      {R"("qk_output":"biased")", "qk_output"},
      {R"("cache":{"quantisation":{"kind":"int8"}})", "cache_int8"},
      {R"("cache":{"quantisation":{"kind":"int4"}})", "cache_int4"},
      {R"("cache":{"quantisation":{"kind":"fp8"}})", "cache_fp8"},
  };
  const auto check = [](const std::string& text, const char* feature) {
    const auto s = model::parse_scenario(text);
    kernels::Capabilities claims = modest();
    EXPECT_EQ(unsupported_reason(claims, s), feature) << text;
    claims.features.insert(feature);
    EXPECT_EQ(unsupported_reason(claims, s), "") << text;
  };
  for (const auto& [field, feature] : gqa) {
    check(R"({"schema":1,"operator":"gqa",)" + field + R"(,"steps":[{"append":2}]})", feature);
  }
  const std::pair<std::string, const char*> attention[] = {
      {R"("softcap":2)", "softcap"},
      {R"("input_rank":3)", "input_rank_3"},
      {R"("softmax_precision":"f64")", "softmax_precision"},
      {R"("mask":{"kind":"boolean","rank":2})", "mask_boolean"},
      {R"("qk_output":"raw")", "qk_output"},
  };
  for (const auto& [field, feature] : attention) {
    check(
        R"({"schema":1,"operator":"attention","opset":23,)" + field + R"(,"steps":[{"append":2}]})",
        feature);
  }
  EXPECT_EQ(reason(R"({"schema":1,"operator":"gqa","steps":[{"append":2},
                       {"append":0,"queries":1}]})"),
            "shared_kv");
}

TEST(UnsupportedReason, NamesWindowsOfAttention) {
  kernels::Capabilities newest = modest();
  newest.opsets.insert(25);
  const auto of = [&](const char* field) {
    return unsupported_reason(
        newest, model::parse_scenario(R"({"schema":1,"operator":"attention","opset":25,)" +
                                      std::string(field) + R"(,"steps":[{"append":2}]})"));
  };
  EXPECT_EQ(of(R"("right_window_size":0)"), "right_window");
  EXPECT_EQ(of(R"("cache":{"window_size":1})"), "attention_window");
}

TEST(UnsupportedReason, KeepsToTheMultiplesThatAFeatureNeeds) {
  kernels::Capabilities claims = modest();
  claims.head_size_multiple = 8;
  claims.head_size_multiple_with = {{"rotary", 16}, {"full cache_int8", 32}};
  claims.features.insert({"rotary", "cache_int8"});
  const auto of = [&](const std::string& fields) {
    return unsupported_reason(claims,
                              model::parse_scenario(R"({"schema":1,"operator":"gqa",)" + fields +
                                                    R"(,"steps":[{"append":2}]})"));
  };
  EXPECT_EQ(of(R"("head_size":8)"), "");
  EXPECT_EQ(of(R"("head_size":24,"rotary":{})"), "head_size 24 with rotary");
  EXPECT_EQ(of(R"("head_size":32,"rotary":{"dim":8})"), "rotary.dim 8");
  EXPECT_EQ(of(R"("head_size":32,"rotary":{"dim":16})"), "");
  EXPECT_EQ(of(R"("head_size":16,"cache":{"quantisation":{"kind":"int8"}})"),
            "head_size 16 with full cache_int8");
  EXPECT_EQ(of(R"("head_size":32,"cache":{"quantisation":{"kind":"int8"}})"), "");
}

TEST(UnsupportedReason, ReadsClaimsFromAnOpsetOn) {
  kernels::Capabilities claims = modest();
  claims.opsets = {24, 25};
  claims.features.insert({"mask_boolean", "short_mask from 25"});
  const auto of = [&](int opset) {
    return unsupported_reason(
        claims, model::parse_scenario(
                    R"({"schema":1,"operator":"attention","opset":)" + std::to_string(opset) +
                    R"(,"mask":{"kind":"boolean","missing_columns":1},"steps":[{"append":2}]})"));
  };
  EXPECT_EQ(of(24), "short_mask");
  EXPECT_EQ(of(25), "");
}

TEST(UnsupportedReason, LeavesOtherCachesToTargetsThatTakeQuantisedOnesAlone) {
  kernels::Capabilities c = modest();
  c.features = {"cache_int4", "cache_quantised_only"};
  auto s = model::parse_scenario(R"({"schema":1,"operator":"gqa","steps":[{"append":2}]})");
  EXPECT_EQ(unsupported_reason(c, s), "a cache that is not quantised");
  s.cache.quantisation.kind = model::QuantisationKind::int4;
  EXPECT_EQ(unsupported_reason(c, s), "");
}

TEST(FixedDataReason, HoldsWherePositionIdsDependOnTheSteps) {
  const auto of = [](const char* ids, const char* batch) {
    return fixed_data_reason(model::parse_scenario(
        R"({"schema":1,"operator":"gqa","batch":)" + std::string(batch) +
        R"(,"rotary":{"position_ids":)" + ids + R"(},"steps":[{"append":2}]})"));
  };
  EXPECT_EQ(of(R"({"shift":9})", "2"), "");
  EXPECT_EQ(of(R"({"extra_columns":2})", "1"), "");
  EXPECT_NE(of(R"({"extra_columns":2})", "2"), "");
  EXPECT_NE(of(R"({"stride":2})", "1"), "");
}

TEST(ArithmeticProfile, CountsTheScaleOfAQuantisedCacheOnlyThere) {
  kernels::Capabilities c = modest();
  c.arithmetic.dequantise_roundings = 1;
  auto s = model::parse_scenario(R"({"schema":1,"operator":"gqa","steps":[{"append":1}]})");
  EXPECT_EQ(arithmetic_profile(c, s).dequantise_roundings, 0);
  s.cache.quantisation.kind = model::QuantisationKind::int8;
  EXPECT_EQ(arithmetic_profile(c, s).dequantise_roundings, 1);
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

TEST(ArithmeticProfile, FollowsTheOpsetAndTheTypeOfTheSoftmax) {
  kernels::Capabilities c;
  c.arithmetic_where["attention f32 25"].splits = 3;
  c.arithmetic_where["attention f32 25 softmax f16"].splits = 4;
  const auto splits = [&](const std::string& fields) {
    return arithmetic_profile(c, model::parse_scenario(R"({"schema":1,"operator":"attention",)" +
                                                       fields + R"(,"steps":[{"append":2}]})"))
        .splits;
  };
  EXPECT_EQ(splits(R"("opset":24)"), 1);
  EXPECT_EQ(splits(R"("opset":25)"), 3);
  EXPECT_EQ(splits(R"("opset":25,"softmax_precision":"f16")"), 4);
  EXPECT_EQ(splits(R"("opset":25,"softmax_precision":"f64")"), 3);
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

TEST(SessionConfig, CarriesTheFeaturesOfBothOperators) {
  const auto gqa = model::parse_scenario(R"({"schema":1,"operator":"gqa","head_size":4,
      "softcap":2,"smooth_softmax":true,"head_sink":true,"packed_qkv":true,"rotary":{"dim":2},
      "qk_norm":{},"qk_output":"biased","cache":{"quantisation":{"kind":"fp8"}},
      "steps":[{"append":1}]})");
  const auto config = session_config(gqa, model::Timeline(gqa), 0);
  EXPECT_EQ(config.softcap, 2);
  EXPECT_TRUE(config.smooth_softmax && config.packed_qkv);
  ASSERT_TRUE(config.head_sink && config.rotary && config.qk_norm);
  EXPECT_EQ(config.rotary->cos.shape.back(), 1);
  EXPECT_EQ(config.qk_output, "biased");
  EXPECT_EQ(config.quantisation.kind, "fp8");
  const auto attention = model::parse_scenario(R"({"schema":1,"operator":"attention","opset":25,
      "input_rank":3,"right_window_size":4,"softmax_precision":"bf16","steps":[{"append":1}]})");
  const auto other = session_config(attention, model::Timeline(attention), 0);
  EXPECT_EQ(other.input_rank, 3);
  EXPECT_EQ(other.right_window_size, 4);
  EXPECT_EQ(other.softmax_precision, kernels::ElementType::bf16);
  EXPECT_FALSE(other.head_sink || other.rotary || other.qk_norm);
}

TEST(StoredLanes, HalveForInt4RoundedUp) {
  model::Scenario s;
  EXPECT_EQ(stored_lanes(s, 7), 7);
  EXPECT_EQ(storage_type(s), kernels::ElementType::f32);
  s.cache.quantisation.kind = model::QuantisationKind::int4;
  EXPECT_EQ(stored_lanes(s, 7), 4);
  EXPECT_EQ(storage_type(s), kernels::ElementType::u8);
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
