// Tensors as nested lists: there and back, and what is refused in which words.
#include "model/tensor_json.h"

#include <cmath>
#include <limits>
#include <string>

#include <gtest/gtest.h>

namespace kvcheck::model {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

StepTensors read(const std::string& text) {
  const Json json = Json::parse(text);
  Reader reader(json, "steps[1]");
  StepTensors tensors;
  read_tensors(reader, tensors);
  reader.finish();
  return tensors;
}

/// The message of the refusal of `text`.
std::string refusal(const std::string& text) {
  try {
    read(text);
  } catch (const ScenarioError& error) {
    return error.what();
  }
  return "taken";
}

std::string written(const StepTensors& tensors) {
  Json json = Json::object();
  write_tensors(json, tensors);
  return json.dump();
}

TEST(TensorJson, ReadsNestedListsRowByRow) {
  const StepTensors tensors = read(R"({"q": [[[1, 2, 3], [4, 5, 6]]], "v": [7]})");
  EXPECT_EQ(tensors.q, (LiteralTensor{{1, 2, 3}, {1, 2, 3, 4, 5, 6}}));
  EXPECT_EQ(tensors.v, (LiteralTensor{{1}, {7}}));
  EXPECT_EQ(tensors.k, LiteralTensor{});
  EXPECT_EQ(tensors.mask, LiteralTensor{});
}

TEST(TensorJson, WritesWhatItReads) {
  const std::string text =
      R"({"q":[[[[0.1],[-2.5]]]],"k":[[1e+300,5e-324]],"v":[[],[]],"mask":[["-inf","inf"],[0.0,1.0]]})";
  EXPECT_EQ(written(read(text)), text);
  EXPECT_EQ(written({}), "{}");
}

TEST(TensorJson, KeepsEveryDouble) {
  StepTensors tensors;
  tensors.k = {{2, 2, 2},
               {0.1, -0.0, 1.0 / 3, std::numeric_limits<double>::max(),
                std::numeric_limits<double>::denorm_min(), kInfinity, -kInfinity, 1e22}};
  const StepTensors back = read(written(tensors));
  EXPECT_EQ(back, tensors);
  EXPECT_TRUE(std::signbit(back.k.values[1]));
}

TEST(TensorJson, SpellsWhatJsonHasNoNumbersFor) {
  EXPECT_EQ(number_json(kInfinity), "inf");
  EXPECT_EQ(number_json(-kInfinity), "-inf");
  EXPECT_EQ(number_json(std::numeric_limits<double>::quiet_NaN()), "nan");
  EXPECT_EQ(number_json(1.5), 1.5);
  const StepTensors tensors = read(R"({"mask": ["nan", "inf", "-inf", true, false]})");
  EXPECT_TRUE(std::isnan(tensors.mask.values[0]));
  EXPECT_EQ(tensors.mask.values[1], kInfinity);
  EXPECT_EQ(tensors.mask.values[2], -kInfinity);
  EXPECT_EQ(tensors.mask.values[3], 1);
  EXPECT_EQ(tensors.mask.values[4], 0);
}

TEST(TensorJson, RefusesRaggedLists) {
  const std::string rule = "all lists at this depth must be as long as the first ";
  EXPECT_EQ(refusal(R"({"k": [[1, 2], [3]]})"),
            "scenario: steps[1].k = a list of 1: " + rule + "(2)");
  EXPECT_EQ(refusal(R"({"v": [[1], [2, 3]]})"),
            "scenario: steps[1].v = a list of 2: " + rule + "(1)");
  EXPECT_EQ(refusal(R"({"q": [[1], 2]})"), "scenario: steps[1].q = 2: " + rule + "(1)");
  EXPECT_EQ(refusal(R"({"q": [[], [1]]})"), "scenario: steps[1].q = a list of 1: " + rule + "(0)");
}

TEST(TensorJson, RefusesWhatIsNoNumber) {
  const std::string rule = R"(must be a number, true, false, "inf", "-inf" or "nan")";
  EXPECT_EQ(refusal(R"({"mask": ["NaN"]})"), "scenario: steps[1].mask = \"NaN\": " + rule);
  EXPECT_EQ(refusal(R"({"mask": [null]})"), "scenario: steps[1].mask = null: " + rule);
  EXPECT_EQ(refusal(R"({"mask": [[1], [[2]]]})"), "scenario: steps[1].mask = [2]: " + rule);
  EXPECT_EQ(refusal(R"({"mask": [{"a": 1}]})"), "scenario: steps[1].mask = {\"a\":1}: " + rule);
}

TEST(TensorJson, RefusesWhatIsNoList) {
  EXPECT_EQ(refusal(R"({"q": 3})"), "scenario: steps[1].q = 3: must be a nested list of numbers");
  EXPECT_EQ(refusal(R"({"k": "inf"})"),
            "scenario: steps[1].k = \"inf\": must be a nested list of numbers");
}

}  // namespace
}  // namespace kvcheck::model
