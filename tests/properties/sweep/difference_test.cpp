// One bit changed in each place where the contract looks, and in none.
#include "properties/sweep/difference.h"

#include <cmath>

#include <gtest/gtest.h>

#include "tests/properties/model_target.h"

namespace kvcheck::properties {
namespace {

model::Scenario two_steps() {
  model::Scenario s;
  s.query_heads = s.kv_heads = 1;
  s.head_size = s.value_head_size = 8;
  s.cache.capacity = 6;
  s.qk_output = model::QkOutput::biased;
  s.fill.kind = model::FillKind::random;
  s.steps.emplace_back(model::Append{{3}, {3}, 0, {}});
  s.steps.emplace_back(model::Append{{1}, {1}, 0, {}});
  return s;
}

/// The healthy model against the model with a mistake.
TargetDifference difference(const Mistake& mistake) {
  const model::Scenario s = two_steps();
  const auto one = make_model_target(s);
  const auto other = make_model_target(s, mistake);
  Case c(*one, s), d(*other, s);
  return compare_targets(c, d.execution());
}

/// Flips the lowest bit of element `index`.
void flip(kernels::Tensor& tensor, std::size_t index) {
  tensor.bytes[index * kernels::element_bytes(tensor.type)] ^= std::byte{1};
}

TEST(Difference, EqualTargetsAreEqual) {
  const auto found = difference(nullptr);
  EXPECT_EQ(found.text, "");
  EXPECT_EQ(found.ratio, 0);
}

TEST(Difference, OneBitOfAnOutputIsNamedWithItsShareOfTheBound) {
  const auto found = difference([](std::size_t step, kernels::StepResult& result) {
    if (step == 1) flip(*result.output, 5);
  });
  EXPECT_NE(found.text.find("step 1 (append 1): output of batch entry 0, query 0, head 0, lane 5"),
            std::string::npos)
      << found.text;
  EXPECT_GT(found.ratio, 0);
  EXPECT_LT(found.ratio, 2);
}

TEST(Difference, OneBitOfAnIntermediateCounts) {
  const auto found = difference([](std::size_t step, kernels::StepResult& result) {
    if (step == 1) flip(*result.qk, 2);
  });
  EXPECT_NE(found.text.find("qk_output of batch entry 0, head 0, query 0, key 2"),
            std::string::npos)
      << found.text;
}

TEST(Difference, ResidentRowsCountAndOthersDoNot) {
  const auto change = [](std::size_t row) {
    return difference([row](std::size_t step, kernels::StepResult& result) {
      if (step == 1) flip(result.rows->value, row * 8 + 1);
    });
  };
  EXPECT_NE(change(3).text.find("value row 3 of batch entry 0, KV head 0 differs"),
            std::string::npos)
      << change(3).text;
  EXPECT_EQ(change(4).text, "");
}

TEST(Difference, NanAgainstANumberIsNoFiniteDifference) {
  const auto found = difference([](std::size_t step, kernels::StepResult& result) {
    if (step == 0)
      result.output->bytes[3] = std::byte{0x7f}, result.output->bytes[2] |= std::byte{0xc0};
  });
  EXPECT_TRUE(std::isinf(found.ratio)) << found.text;
}

}  // namespace
}  // namespace kvcheck::properties
