// Shapes, types and values of the inputs that belong to no token.
#include "properties/parameter_tensors.h"

#include <cmath>

#include <gtest/gtest.h>

#include "model/parameters.h"
#include "model/scenario_json.h"
#include "properties/execution.h"

namespace kvcheck::properties {
namespace {

using Shape = std::vector<std::int64_t>;

model::Scenario gqa(const std::string& fields) {
  return model::parse_scenario(R"({"schema":1,"operator":"gqa","query_heads":4,"kv_heads":2,
      "head_size":4,)" + fields +
                               R"(,"steps":[{"append":3},{"append":1}]})");
}

TEST(HeadSink, HasALogitForEachQueryHeadInTheElementType) {
  const auto s = gqa(R"("head_sink":true,"element_type":"f16")");
  const auto sinks = head_sink(s);
  EXPECT_EQ(sinks.type, kernels::ElementType::f16);
  EXPECT_EQ(sinks.shape, (Shape{4}));
  for (std::int64_t h = 0; h < 4; ++h) EXPECT_EQ(element(sinks, h), model::sink_logit(s, h));
}

TEST(RotaryConfig, HasARowForEveryPositionAndTheAnglesOfTheTable) {
  const auto s = gqa(R"("rotary":{"interleaved":true})");
  const auto config = rotary_config(s, model::Timeline(s));
  EXPECT_TRUE(config.interleaved);
  EXPECT_FALSE(config.position_ids);
  EXPECT_EQ(config.cos.shape, (Shape{4, 2}));
  EXPECT_EQ(element(config.cos, 0), 1);
  EXPECT_EQ(element(config.sin, 1), 0);
  // Frequencies of four lanes: 1 and 10000^(-1/2).
  EXPECT_FLOAT_EQ(static_cast<float>(element(config.cos, 3 * 2)), std::cos(3.0f));
  EXPECT_FLOAT_EQ(static_cast<float>(element(config.sin, 3 * 2 + 1)), std::sin(0.03f));
}

TEST(RotaryConfig, ReachesTheLargestOfThePositionIds) {
  const auto s = gqa(R"("rotary":{"dim":2,"position_ids":{"shift":7,"stride":2}})");
  const auto config = rotary_config(s, model::Timeline(s));
  EXPECT_TRUE(config.position_ids);
  EXPECT_EQ(config.sin.shape, (Shape{7 + 2 * 3 + 1, 1}));
}

TEST(QkNormConfig, TellsQueriesFromKeys) {
  const auto s = gqa(R"("qk_norm":{"epsilon":0.25})");
  const auto config = qk_norm_config(s);
  EXPECT_EQ(config.epsilon, 0.25);
  EXPECT_EQ(config.key_weight.shape, (Shape{4}));
  EXPECT_EQ(element(config.query_weight, 2), model::norm_weight(s, model::NormSide::query, 2));
  EXPECT_EQ(element(config.key_weight, 2), model::norm_weight(s, model::NormSide::key, 2));
  EXPECT_NE(config.query_weight.bytes, config.key_weight.bytes);
}

TEST(QuantisationConfig, HasOneScaleOrOneForEachKvHeadAndLane) {
  EXPECT_FALSE(quantisation_config(gqa(R"("softcap":1)")).quantised());
  const auto whole =
      quantisation_config(gqa(R"("cache":{"quantisation":{"kind":"int4"}},"element_type":"bf16")"));
  EXPECT_EQ(whole.kind, "int4");
  EXPECT_EQ(whole.key_scale.type, kernels::ElementType::f32);
  EXPECT_EQ(whole.key_scale.shape, (Shape{1}));
  const auto s = gqa(R"("cache":{"quantisation":{"kind":"int8","per_channel":true}})");
  const auto each = quantisation_config(s);
  EXPECT_TRUE(each.per_channel);
  EXPECT_EQ(each.value_scale.shape, (Shape{2, 4}));
  EXPECT_EQ(element(each.value_scale, 1 * 4 + 3),
            static_cast<double>(model::cache_scale(s, model::CacheSide::value, 1, 3)));
  EXPECT_NE(each.key_scale.bytes, each.value_scale.bytes);
}

}  // namespace
}  // namespace kvcheck::properties
