// Shapes of requests and answers.
#include "kernels/process/shape_check.h"

#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace kvcheck::kernels {
namespace {

SessionConfig config_of_two() {
  SessionConfig config;
  config.batch = 2;
  config.query_heads = 4;
  config.kv_heads = 2;
  config.head_size = 8;
  config.value_head_size = 3;
  config.capacity = 6;
  config.element_type = ElementType::f16;
  return config;
}

StepRequest step_of(const SessionConfig& config) {
  StepRequest step;
  step.tokens = {3, 1};
  step.queries = {2, 1};
  step.query = Tensor::zeros(ElementType::f16, {2, 2, 4, 8});
  step.key = Tensor::zeros(ElementType::f16, {2, 3, 2, 8});
  step.value = Tensor::zeros(ElementType::f16, {2, 3, 2, 3});
  if (config.mask == "boolean") step.mask = Tensor::zeros(ElementType::boolean, {4, 2, 6});
  return step;
}

template <class Error>
std::string error_of(const auto& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "(no error)";
}

void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is missing in: " << text;
}

std::string request_error(const StepRequest& step, const SessionConfig& config) {
  return error_of<std::invalid_argument>([&] { check_step_request(step, config); });
}

std::string answer_error(const std::vector<TensorHead>& tensors, const Capabilities& claims,
                         bool want_rows = false, std::int64_t queries = 2) {
  return error_of<ProtocolError>(
      [&] { check_step_answer(tensors, queries, want_rows, claims, config_of_two()); });
}

const TensorHead kOutput{"output", ElementType::f16, {2, 2, 4, 3}, 96};
const TensorHead kKey{"rows.key", ElementType::f16, {2, 2, 6, 8}, 384};
const TensorHead kValue{"rows.value", ElementType::f16, {2, 2, 6, 3}, 144};

TEST(StepRequestCheck, TakesRaggedStepsOfTheSession) {
  EXPECT_EQ(request_error(step_of(config_of_two()), config_of_two()), "(no error)");
}

TEST(StepRequestCheck, NamesTensorFoundAndWanted) {
  const SessionConfig config = config_of_two();
  StepRequest step = step_of(config);
  step.value = Tensor::zeros(ElementType::f16, {2, 3, 2, 8});
  EXPECT_EQ(request_error(step, config), "value is f16 [2,3,2,8]; the session takes f16 [2,3,2,3]");
  step = step_of(config);
  step.key.type = ElementType::bf16;
  expect_contains(request_error(step, config), "key is bf16");
  step = step_of(config);
  step.query.bytes.pop_back();
  expect_contains(request_error(step, config), "query holds 255 bytes; its shape takes 256");
}

TEST(StepRequestCheck, TakesOneCountForEveryEntry) {
  const SessionConfig config = config_of_two();
  StepRequest step = step_of(config);
  step.tokens = {3};
  expect_contains(request_error(step, config), "tokens = [3]");
  step.tokens = {3, -1};
  expect_contains(request_error(step, config), "each at least 0");
}

TEST(StepRequestCheck, TakesAMaskOfAnyRankWhereTheSessionHasOne) {
  SessionConfig config = config_of_two();
  config.mask = "boolean";
  StepRequest step = step_of(config);
  EXPECT_EQ(request_error(step, config), "(no error)");
  step.mask = Tensor::zeros(ElementType::boolean, {2, 4, 2, 9});
  EXPECT_EQ(request_error(step, config), "(no error)");
  step.mask = Tensor::zeros(ElementType::boolean, {2, 9});
  EXPECT_EQ(request_error(step, config), "(no error)");
  step.mask = Tensor::zeros(ElementType::boolean, {3, 9});
  expect_contains(request_error(step, config), "the session takes boolean [2,any]");
  for (const std::vector<std::int64_t>& shape :
       {std::vector<std::int64_t>{9}, {1, 9}, {1, 2, 9}, {1, 4, 1, 9}}) {
    step.mask = Tensor::zeros(ElementType::boolean, shape);
    EXPECT_EQ(request_error(step, config), "(no error)");
  }
  step.mask = Tensor::zeros(ElementType::boolean, {});
  expect_contains(request_error(step, config), "mask is boolean []");
  step.mask.reset();
  expect_contains(request_error(step, config), "mask is absent");
}

TEST(LoadRequestCheck, TakesKeysAndValuesOfOneLength) {
  LoadRequest load;
  load.lengths = {5, 0};
  load.rows.key = Tensor::zeros(ElementType::f16, {2, 2, 5, 8});
  load.rows.value = Tensor::zeros(ElementType::f16, {2, 2, 4, 3});
  expect_contains(
      error_of<std::invalid_argument>([&] { check_load_request(load, config_of_two()); }),
      "rows.value is f16 [2,2,4,3]; the session takes f16 [2,2,5,3]");
  load.rows.value = Tensor::zeros(ElementType::f16, {2, 2, 5, 3});
  EXPECT_NO_THROW(check_load_request(load, config_of_two()));
}

TEST(StepAnswerCheck, TakesWhatIsClaimedAndWanted) {
  EXPECT_EQ(answer_error({kOutput}, {}), "(no error)");
  EXPECT_EQ(answer_error({kValue, kOutput, kKey}, {}, true), "(no error)");
  expect_contains(answer_error({}, {}), "lacks the tensor output, which must be f16 [2,2,4,3]");
  expect_contains(answer_error({kOutput, kKey}, {}, true), "lacks the tensor rows.value");
  expect_contains(answer_error({kOutput, kKey, kValue}, {}), "this request takes output");
}

TEST(StepAnswerCheck, AsksNoOutputOfAStepWithoutQueries) {
  EXPECT_EQ(answer_error({}, {}, false, 0), "(no error)");
  expect_contains(answer_error({kOutput}, {}, false, 0), "must be f16 [2,0,4,3]");
}

TEST(StepAnswerCheck, ReadsVisibilityOverTheRowsOfTheAnswer) {
  Capabilities claims;
  claims.outputs = false;
  claims.visible = true;
  const TensorHead visible{"visible", ElementType::boolean, {2, 2, 5}, 20};
  EXPECT_EQ(answer_error({visible}, claims), "(no error)");
  expect_contains(answer_error({visible, kKey, kValue}, claims, true), "must be boolean [2,2,6]");
  expect_contains(answer_error({visible, kOutput}, claims), "this request takes visible");
}

TEST(StepAnswerCheck, TakesTheIntermediateOfASessionThatHasOne) {
  const TensorHead qk{"qk", ElementType::f16, {2, 4, 2, 9}, 288};
  expect_contains(answer_error({kOutput, qk}, {}), "this request takes output");
  SessionConfig config = config_of_two();
  config.qk_output = "biased";
  const auto error = [&](const std::vector<TensorHead>& tensors) {
    return error_of<ProtocolError>([&] { check_step_answer(tensors, 2, false, {}, config); });
  };
  EXPECT_EQ(error({kOutput, qk}), "(no error)");
  expect_contains(error({kOutput}), "lacks the tensor qk, which must be f16 [2,4,2,any]");
}

TEST(RowsAnswerCheck, WantsCodesOfAQuantisedCache) {
  SessionConfig config = config_of_two();
  config.value_head_size = 8;
  config.quantisation.kind = "int4";
  const TensorHead key{"rows.key", ElementType::u8, {2, 2, 6, 4}, 96};
  TensorHead value{"rows.value", ElementType::u8, {2, 2, 6, 4}, 96};
  EXPECT_NO_THROW(check_rows_answer(std::vector{key, value}, config));
  value.type = ElementType::i8;
  EXPECT_THROW(check_rows_answer(std::vector{key, value}, config), ProtocolError);
  config.quantisation.kind = "int8";
  EXPECT_THROW(check_rows_answer(std::vector{key, value}, config), ProtocolError);
}

TEST(RowsAnswerCheck, WantsBothOfOneLength) {
  const auto error = [](const std::vector<TensorHead>& tensors) {
    return error_of<ProtocolError>([&] { check_rows_answer(tensors, config_of_two()); });
  };
  EXPECT_EQ(error({kKey, kValue}), "(no error)");
  TensorHead shorter = kValue;
  shorter.shape[2] = 5;
  expect_contains(error({kKey, shorter}), "rows.value is f16 [2,2,5,3]; it must be f16 [2,2,6,3]");
  expect_contains(error({kKey, kValue, kKey}), "rows.key twice");
}

}  // namespace
}  // namespace kvcheck::kernels
