// The calls that scenarios amount to: their inputs, and that they keep every rule.
#include "properties/calls/call_of.h"

#include <cstring>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <rapidcheck/Random.h>

#include "kernels/cpu/naive/cpu_naive.h"
#include "model/calls/attention_rules.h"
#include "model/calls/gqa_rules.h"
#include "model/scenario_json.h"
#include "properties/generator.h"

namespace kvcheck::properties {
namespace {

using kernels::ElementType;
using kernels::OperatorCall;
using Shape = std::vector<std::int64_t>;

OperatorCall call_of(const char* text) {
  auto made = operator_call_of(model::parse_scenario(text));
  if (const auto* none = std::get_if<NoCall>(&made)) ADD_FAILURE() << none->reason;
  return std::get<OperatorCall>(std::move(made));
}

std::string why_not(const char* text) {
  const auto made = operator_call_of(model::parse_scenario(text));
  const auto* none = std::get_if<NoCall>(&made);
  return none == nullptr ? "" : none->reason;
}

Shape shape_of(const OperatorCall& call, const char* name) {
  const auto* input = call.find(name);
  return input == nullptr ? Shape{-1} : input->tensor.shape;
}

template <class Number>
std::vector<Number> numbers(const OperatorCall& call, const char* name) {
  const auto& bytes = call.find(name)->tensor.bytes;
  std::vector<Number> values(bytes.size() / sizeof(Number));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

TEST(CallOf, GivesTheLastStepOfAWindowedCacheItsPastAndLengths) {
  const OperatorCall call = call_of(R"({"schema":1,"operator":"gqa","query_heads":2,"head_size":8,
      "cache":{"layout":"block","capacity":6,"window_size":4},
      "steps":[{"append":7},{"append":2}]})");
  EXPECT_EQ(shape_of(call, "query"), (Shape{1, 2, 16}));
  EXPECT_EQ(shape_of(call, "key"), (Shape{1, 2, 8}));
  EXPECT_EQ(shape_of(call, "past_key"), (Shape{1, 1, 6, 8}));
  EXPECT_EQ(numbers<std::int32_t>(call, "seqlens_k"), std::vector<std::int32_t>{8});
  EXPECT_EQ(numbers<std::int32_t>(call, "total_sequence_length"), std::vector<std::int32_t>{9});
  EXPECT_EQ(std::get<std::int64_t>(call.attributes.at("sliding_window_cache")), 1);
  EXPECT_EQ(std::get<std::int64_t>(call.attributes.at("local_window_size")), 4);
}

TEST(CallOf, PutsPackedInputsSideBySideForEachToken) {
  const char* plain = R"({"schema":1,"operator":"gqa","query_heads":2,"head_size":8,
      "cache":{"capacity":4},"steps":[{"append":3}]})";
  const char* together = R"({"schema":1,"operator":"gqa","query_heads":2,"head_size":8,
      "packed_qkv":true,"cache":{"capacity":4},"steps":[{"append":3}]})";
  const auto query = numbers<float>(call_of(plain), "query");
  const auto key = numbers<float>(call_of(plain), "key");
  const auto value = numbers<float>(call_of(plain), "value");
  const OperatorCall call = call_of(together);
  EXPECT_EQ(call.find("key"), nullptr);
  EXPECT_EQ(shape_of(call, "query"), (Shape{1, 3, 32}));
  const auto all = numbers<float>(call, "query");
  for (std::size_t token = 0; token < 3; ++token) {
    for (std::size_t lane = 0; lane < 8; ++lane) {
      EXPECT_EQ(all[token * 32 + 8 + lane], query[token * 16 + 8 + lane]);
      EXPECT_EQ(all[token * 32 + 16 + lane], key[token * 8 + lane]);
      EXPECT_EQ(all[token * 32 + 24 + lane], value[token * 8 + lane]);
    }
  }
}

TEST(CallOf, GivesAttentionItsPastOrItsWholeBuffer) {
  const OperatorCall past = call_of(R"({"schema":1,"operator":"attention","opset":23,
      "head_size":4,"steps":[{"append":3},{"append":2,"queries":1}]})");
  EXPECT_EQ(shape_of(past, "Q"), (Shape{1, 1, 1, 4}));
  EXPECT_EQ(shape_of(past, "past_key"), (Shape{1, 1, 3, 4}));
  const OperatorCall buffer = call_of(R"({"schema":1,"operator":"attention","opset":24,
      "nonpad_kv_seqlen":true,"head_size":4,"cache":{"capacity":8},
      "steps":[{"append":3},{"append":2,"queries":1}]})");
  EXPECT_EQ(shape_of(buffer, "K"), (Shape{1, 1, 8, 4}));
  EXPECT_EQ(buffer.find("past_key"), nullptr);
  EXPECT_EQ(numbers<std::int64_t>(buffer, "nonpad_kv_seqlen"), std::vector<std::int64_t>{5});
}

TEST(CallOf, SaysWhyAScenarioHasNone) {
  EXPECT_NE(why_not(R"({"schema":1,"operator":"gqa","cache":{"capacity":9},
      "steps":[{"append":3},{"rollback":1}]})")
                .find("no append"),
            std::string::npos);
  EXPECT_NE(why_not(R"({"schema":1,"operator":"gqa","batch":2,"cache":{"capacity":9},
      "steps":[{"append":3},{"append":[1,2]}]})")
                .find("ragged"),
            std::string::npos);
}

TEST(CallOf, KeepsEveryRuleOfItsOperator) {
  const auto target = kernels::make_cpu_naive();
  kernels::Capabilities can = target->capabilities();
  // What the rules of ONNX Runtime's CPU kernels leave out.
  can.element_types = {"f32", "f16"};
  can.opsets = {23, 24};
  can.head_size_multiple = 16;
  for (const char* other : {"qk_norm", "short_mask", "mask_broadcast", "empty_append"}) {
    can.features.erase(other);
  }
  const auto generator = scenario_generator(can);
  int calls = 0;
  for (std::uint64_t i = 0; i < 600; ++i) {
    const auto scenario = generator(rc::Random(i), static_cast<int>(i % 100)).value();
    // ONNX Runtime turns whole vectors of 8 pairs.
    if (scenario.rotary && scenario.rotary->dim % 16 != 0) continue;
    const auto made = operator_call_of(scenario);
    const auto* call = std::get_if<OperatorCall>(&made);
    if (call == nullptr) continue;
    ++calls;
    if (call->op == "gqa") {
      for (const auto& broken : model::check(gqa_call_info(*call))) {
        ADD_FAILURE() << broken.message() << "\n" << model::to_json(scenario).dump();
      }
    } else {
      for (const auto& broken :
           model::check(attention_call_info(*call), model::Strictness::operator_contract)) {
        ADD_FAILURE() << broken.message() << "\n" << model::to_json(scenario).dump();
      }
    }
  }
  EXPECT_GT(calls, 150);
}

}  // namespace
}  // namespace kvcheck::properties
