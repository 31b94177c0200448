// What a served target is told of each request, and requests that are none.
#include "kernels/process/server.h"

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/process/call_head.h"
#include "tests/kernels/served_pipes.h"

namespace kvcheck::kernels {
namespace {

using nlohmann::json;

class ServerAnswers : public Served {};

TEST_F(ServerAnswers, GreetsWithItsClaims) {
  told_.claims.version = "3";
  const json hello = ask(hello_request(9));
  EXPECT_EQ(hello["id"], 9);
  EXPECT_EQ(hello["protocol"], 1);
  EXPECT_EQ(hello["name"], "told");
  EXPECT_EQ(hello["version"], "3");
  EXPECT_TRUE(hello["capabilities"].is_object());
}

TEST_F(ServerAnswers, KeepsSeveralSessionsApart) {
  greet();
  for (const std::int64_t number : {5, 2, 9}) open(number);
  EXPECT_EQ(ask(step_request(7, 2, one_token(), false))["id"], 7);
  EXPECT_EQ(std::to_integer<int>(body_[0]), 2);
  ask(step_request(8, 5, one_token(), false));
  EXPECT_EQ(std::to_integer<int>(body_[0]), 1);
  EXPECT_EQ(ask(close_request(9, 2))["answer"], "ok");
  EXPECT_EQ(told_.closed, 1);
  ask(step_request(8, 9, one_token(), false));
  EXPECT_EQ(std::to_integer<int>(body_[0]), 3);
  open(2);
  ask(step_request(8, 2, one_token(), false));
  EXPECT_EQ(std::to_integer<int>(body_[0]), 4);
  EXPECT_EQ(code(), 0);
  EXPECT_EQ(told_.closed, 4);
}

TEST_F(ServerAnswers, StepsArriveWhole) {
  greet();
  SessionConfig config;
  config.mask = "boolean";
  config.rotary = RotaryConfig{false, true, Tensor::zeros(ElementType::f32, {2, 2}),
                               Tensor::zeros(ElementType::f32, {2, 2})};
  EXPECT_EQ(ask(open_request(1, 1, config))["answer"], "ok");
  StepRequest step = one_token();
  for (const auto& [tensor, value] :
       {std::pair{&step.query, 1}, std::pair{&step.key, 2}, std::pair{&step.value, 3}}) {
    tensor->bytes[5] = static_cast<std::byte>(value);
  }
  step.mask = Tensor{ElementType::boolean, {2}, {std::byte{0}, std::byte{1}}};
  step.position_ids = Tensor::zeros(ElementType::i64, {1, 1});
  step.position_ids->bytes[0] = std::byte{6};
  step.poison = PoisonRows{-std::numeric_limits<double>::infinity(), {2}};
  const json answer = ask(step_request(1, 1, step, true));
  EXPECT_EQ(answer["tensors"].size(), 3U) << answer;
  // Taken apart whole, so that one more field does not compile until it is compared here.
  const auto& [tokens, queries, query, key, value, mask, position_ids, poison, want_rows] =
      told_.stepped;
  EXPECT_EQ(tokens, step.tokens);
  EXPECT_EQ(queries, step.queries);
  EXPECT_EQ(query.bytes, step.query.bytes);
  EXPECT_EQ(key.bytes, step.key.bytes);
  EXPECT_EQ(value.bytes, step.value.bytes);
  ASSERT_TRUE(mask && position_ids && poison);
  EXPECT_EQ(mask->bytes, step.mask->bytes);
  EXPECT_EQ(position_ids->bytes, step.position_ids->bytes);
  const auto& [number, first_row] = *poison;
  EXPECT_EQ(number, step.poison->value);
  EXPECT_EQ(first_row, step.poison->first_row);
  EXPECT_TRUE(want_rows);
  step.poison.reset();
  EXPECT_EQ(ask(step_request(1, 1, step, false))["tensors"].size(), 1U);
  EXPECT_FALSE(told_.stepped.poison);
  EXPECT_FALSE(told_.stepped.want_rows);
}

TEST_F(ServerAnswers, LoadsAndPlacesArriveWhole) {
  ready();
  LoadRequest load;
  load.lengths = {3};
  load.rows = {Tensor::zeros(ElementType::f32, {1, 1, 2, 8}),
               Tensor::zeros(ElementType::f32, {1, 1, 2, 8})};
  load.rows.key.bytes[1] = std::byte{7};
  load.rows.value.bytes[1] = std::byte{8};
  EXPECT_EQ(ask(load_request(1, 1, load))["answer"], "ok");
  const auto& [lengths, rows] = told_.loaded;
  const auto& [key, value] = rows;
  EXPECT_EQ(lengths, load.lengths);
  EXPECT_EQ(key.bytes, load.rows.key.bytes);
  EXPECT_EQ(value.bytes, load.rows.value.bytes);
  for (const auto of : {ElementPlace::Of::output, ElementPlace::Of::key, ElementPlace::Of::value}) {
    EXPECT_EQ(ask(last_store_request(1, 1, {of, 1, 2, 3, 4}))["store"], "stored at line 7");
    const auto& [place, entry, head, row, lane] = told_.place;
    EXPECT_EQ(place, of);
    EXPECT_EQ((std::vector{entry, head, row, lane}), (std::vector<std::int64_t>{1, 2, 3, 4}));
  }
}

TEST_F(ServerAnswers, CallsArriveWhole) {
  greet();
  OperatorCall call;
  call.op = "attention";
  call.opset = 24;
  call.attributes = {{"is_causal", std::int64_t{1}},
                     {"scale", std::numeric_limits<double>::infinity()},
                     {"mode", std::string("x")}};
  call.inputs = {{"lengths", Tensor::zeros(ElementType::i32, {1})},
                 {"Q", Tensor::zeros(ElementType::f32, {0})}};
  call.inputs[0].tensor.bytes[2] = std::byte{9};
  call.outputs = {"Y", "present_key"};
  const json answer = ask(call_request(3, call));
  EXPECT_EQ(answer["tensors"], json::parse(R"([{"name":"Y","type":"f64","shape":[2]}])"));
  EXPECT_EQ(body_.size(), 16U);
  const auto& [op, opset, attributes, inputs, outputs] = told_.called;
  EXPECT_EQ(op, call.op);
  EXPECT_EQ(opset, call.opset);
  EXPECT_EQ(attributes, call.attributes);
  EXPECT_EQ(outputs, call.outputs);
  ASSERT_EQ(inputs.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(inputs[i].name, call.inputs[i].name);
    EXPECT_EQ(inputs[i].tensor.type, call.inputs[i].tensor.type);
    EXPECT_EQ(inputs[i].tensor.shape, call.inputs[i].tensor.shape);
    EXPECT_EQ(inputs[i].tensor.bytes, call.inputs[i].tensor.bytes);
  }
}

TEST_F(ServerAnswers, StopsAtAKindThatItDoesNotKnow) {
  ready();
  expect_contains(error_of(R"({"kind":"fork","id":3,"session":1})"),
                  "request kind 'fork' is unknown to protocol 1; known are call, close, hello");
}

TEST_F(ServerAnswers, StopsAtAProtocolThatItDoesNotSpeak) {
  EXPECT_EQ(error_of(R"({"kind":"hello","id":1,"protocol":2})"),
            "protocol 2 is asked for; this target speaks 1");
}

TEST_F(ServerAnswers, WantsTheHandshakeFirst) {
  EXPECT_EQ(error_of(open_request(1, 1, SessionConfig{})), "open came before hello");
}

TEST_F(ServerAnswers, StopsAtAFieldOfAStepThatItDoesNotKnow) {
  ready();
  EXPECT_EQ(error_of(R"({"kind":"step","id":1,"session":1,"tokens":[1],"queries":[1],"fork":3})"),
            "step has the unknown field fork");
}

TEST_F(ServerAnswers, StopsAtASessionThatIsNotOpen) {
  ready();
  EXPECT_EQ(error_of(present_request(1, 2)), "session 2 is not open");
}

TEST_F(ServerAnswers, StopsAtASessionThatIsOpenAlready) {
  ready();
  EXPECT_EQ(error_of(open_request(1, 1, SessionConfig{})), "session 1 is open already");
}

TEST_F(ServerAnswers, ComparesTensorsWithTheSession) {
  ready();
  StepRequest step = one_token();
  step.key = Tensor::zeros(ElementType::f32, {1, 1, 1, 7});
  expect_contains(error_of(step_request(1, 1, step, false)), "key is f32 [1,1,1,7]");
}

TEST_F(ServerAnswers, WantsOneCountForEveryEntry) {
  ready();
  expect_contains(error_of(rollback_request(1, 1, std::vector<std::int64_t>{1, 1})),
                  "tokens = [1,1]: must hold 1 counts");
}

/// A step with one more tensor.
FrameContent with_tensor(const StepRequest& step, const char* name) {
  FrameContent content = step_request(1, 1, step, false);
  content.tensors.push_back({name, &step.query});
  json head = json::parse(content.head);
  head["tensors"] = json_descriptions(content.tensors);
  content.head = head.dump();
  return content;
}

TEST_F(ServerAnswers, StopsAtATensorThatNobodyTakes) {
  ready();
  const StepRequest step = one_token();
  EXPECT_EQ(error_of(with_tensor(step, "bias")), "the request holds the unknown tensor bias");
}

TEST_F(ServerAnswers, StopsAtATensorThatComesTwice) {
  ready();
  const StepRequest step = one_token();
  EXPECT_EQ(error_of(with_tensor(step, "key")), "the request holds the tensor key twice");
}

TEST_F(ServerAnswers, StopsAtAPlaceThatIsNone) {
  ready();
  expect_contains(
      error_of(R"({"kind":"last_store","id":1,"session":1,"of":"scores","entry":0,"head":0})"),
      "of = \"scores\": is none of output, key, value");
}

TEST_F(ServerAnswers, StopsAtAnAttributeWithoutAType) {
  greet();
  expect_contains(error_of(R"({"kind":"call","id":1,"op":"gqa","opset":1,"outputs":[],)"
                           R"("attributes":{"scale":{"double":1}}})"),
                  "attributes.scale = {\"double\":1}: has none of the types int, float, string");
}

}  // namespace
}  // namespace kvcheck::kernels
