// Operator calls as they travel and as an adapter answers them.
#include "kernels/process/call_head.h"

#include <cstring>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "kernels/process/process_target.h"

namespace kvcheck::kernels {
namespace {

OperatorCall small_call() {
  OperatorCall call;
  call.op = "attention";
  call.opset = 24;
  call.attributes = {{"is_causal", std::int64_t{1}}, {"scale", 1.0}, {"mode", std::string("x")}};
  call.inputs = {{"Q", Tensor::zeros(ElementType::f32, {2})},
                 {"lengths", Tensor::zeros(ElementType::i32, {1})}};
  call.inputs[0].tensor.bytes[3] = std::byte{0x40};  // 2.0
  call.outputs = {"Y", "present_key"};
  return call;
}

TEST(CallHead, GivesEveryAttributeItsType) {
  const OperatorCall call = small_call();
  EXPECT_EQ(call_request(7, call).head,
            R"({"attributes":{"is_causal":{"int":1},"mode":{"string":"x"},"scale":{"float":1.0}},)"
            R"("id":7,"kind":"call","op":"attention","opset":24,"outputs":["Y","present_key"],)"
            R"("tensors":[{"name":"Q","shape":[2],"type":"f32"},)"
            R"({"name":"lengths","shape":[1],"type":"i32"}]})");
}

TEST(CallAnswer, HoldsTheOutputsInTheirOrder) {
  const TensorHead y{"Y", ElementType::f32, {1}, 4}, key{"present_key", ElementType::f32, {1}, 4};
  EXPECT_NO_THROW(check_call_answer(std::vector{y, key}, small_call()));
  EXPECT_THROW(check_call_answer(std::vector{key, y}, small_call()), ProtocolError);
  EXPECT_THROW(check_call_answer(std::vector{y}, small_call()), ProtocolError);
}

std::unique_ptr<Target> adapter(const std::string& name) {
  ProcessOptions options;
  options.program = "python3";
  options.arguments = {"-B", fmt::format("{}/{}_adapter.py", KVCHECK_TEST_ADAPTERS, name)};
  auto made = make_process_target(std::move(options));
  auto* target = std::get_if<std::unique_ptr<Target>>(&made);
  return target != nullptr ? std::move(*target) : nullptr;
}

TEST(ProcessCall, GoesToTheAdapterAndBack) {
  const auto target = adapter("feature");
  ASSERT_NE(target, nullptr);
  OperatorCall call = small_call();
  const auto answer = target->call(call);
  const auto* result = std::get_if<CallResult>(&answer);
  ASSERT_NE(result, nullptr);
  ASSERT_EQ(result->outputs.size(), 2U);
  EXPECT_EQ(result->outputs[0].name, "Y");
  float value = 0;
  std::memcpy(&value, result->outputs[0].tensor.bytes.data(), 4);
  EXPECT_EQ(value, 2);
  EXPECT_EQ(result->outputs[1].tensor.type, ElementType::i32);
  call.attributes["is_causal"] = std::int64_t{2};
  const auto refused = target->call(call);
  ASSERT_TRUE(std::holds_alternative<Refusal>(refused));
  EXPECT_EQ(std::get<Refusal>(refused).reason, "is_causal=2 scale=1.0 mode=x");
}

TEST(ProcessCall, IsRefusedWhereItIsNotClaimed) {
  const auto target = adapter("echo");
  ASSERT_NE(target, nullptr);
  EXPECT_TRUE(std::holds_alternative<Refusal>(target->call(small_call())));
}

}  // namespace
}  // namespace kvcheck::kernels
