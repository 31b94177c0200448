// values.qk_output: each mode green on the exact tensor, red on each way to spoil it.
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "model/scenario_json.h"
#include "properties/search.h"
#include "properties/tensor_writer.h"
#include "tests/properties/model_target.h"

namespace kvcheck::properties {
namespace {

constexpr const char* kGqa = R"({"schema":1,"operator":"gqa","query_heads":4,"kv_heads":2,
    "batch":2,"head_size":4,"cache":{"window_size":2,"capacity":6},"fill":{"seed":4},)";
constexpr const char* kAttention = R"({"schema":1,"operator":"attention","opset":24,"head_size":4,
    "softcap":2,"mask":{"kind":"additive","rank":2,"hidden_percent":40,"seed":3},
    "fill":{"seed":4},)";
constexpr const char* kSteps = R"("steps":[{"append":3},{"append":1}]})";

model::Scenario scenario(const char* start, const char* mode) {
  return model::parse_scenario(std::string(start) + "\"qk_output\":\"" + mode + "\"," + kSteps);
}

Judgement judged(const model::Scenario& s, const Mistake& mistake = nullptr) {
  const auto target = make_model_target(s, mistake);
  return judge_fresh(*target, s, *find_property("values.qk_output"));
}

void set(kernels::Tensor& tensor, std::size_t index, float value) {
  model::store_element(model::ElementType::f32, value, tensor.bytes.data() + 4 * index);
}

/// Sets one element of the last step's tensor, of the shape [2,4,1,4] under kGqa.
Mistake last(std::size_t index, float value) {
  return [=](std::size_t step, kernels::StepResult& result) {
    if (step == 1) set(*result.qk, index, value);
  };
}

TEST(QkOutput, HoldsForEveryModeThatTheOperatorsHave) {
  for (const char* mode : {"biased", "probabilities"}) {
    const auto judgement = judged(scenario(kGqa, mode));
    EXPECT_EQ(judgement.verdict, Verdict::passed) << mode << ": " << judgement.text;
    EXPECT_GT(judgement.max_ratio, 0) << mode;
  }
  for (const char* mode : {"raw", "softcapped", "biased", "probabilities"}) {
    const auto judgement = judged(scenario(kAttention, mode));
    EXPECT_EQ(judgement.verdict, Verdict::passed) << mode << ": " << judgement.text;
  }
}

TEST(QkOutput, NamesTheKeyOfAValueThatIsFarOff) {
  // Head 2 of entry 1; the query at position 3 sees keys 2 and 3.
  const auto judgement = judged(scenario(kGqa, "probabilities"), last((4 + 2) * 4 + 3, 0.123f));
  EXPECT_EQ(judgement.verdict, Verdict::failed);
  EXPECT_EQ(judgement.kind, Kind::over_bound);
  EXPECT_EQ(judgement.hint.entry, 1);
  EXPECT_EQ(judgement.hint.query_head, 2);
  EXPECT_NE(judgement.text.find("of key 3 is 0.123"), std::string::npos) << judgement.text;
}

TEST(QkOutput, AKeyOutOfTheWindowMustHoldZero) {
  const auto s = scenario(kGqa, "biased");
  const auto judgement = judged(s, last(1, 1e-30f));
  EXPECT_EQ(judgement.verdict, Verdict::failed);
  EXPECT_EQ(judgement.kind, Kind::over_bound);
  EXPECT_EQ(judged(s, last(1, -std::numeric_limits<float>::infinity())).verdict, Verdict::failed);
}

TEST(QkOutput, AHiddenLogitOfAttentionMustBeMinusInfinity) {
  const auto judgement =
      judged(scenario(kAttention, "biased"), [](std::size_t, kernels::StepResult& result) {
        for (std::size_t i = 0; i < result.qk->bytes.size() / 4; ++i) {
          if (std::isinf(element(*result.qk, static_cast<std::int64_t>(i)))) {
            set(*result.qk, i, -1e30f);
          }
        }
      });
  EXPECT_EQ(judgement.verdict, Verdict::failed);
  EXPECT_NE(judgement.text.find("where the exact one is -inf"), std::string::npos);
}

TEST(QkOutput, ANaNIsNotFinite) {
  EXPECT_EQ(judged(scenario(kGqa, "biased"), last(3, std::nanf(""))).kind, Kind::not_finite);
}

TEST(QkOutput, ATensorThatIsMissingOrOfAnotherShapeIsNonsense) {
  const auto s = scenario(kGqa, "biased");
  const auto missing = judged(s, [](std::size_t, kernels::StepResult& r) { r.qk.reset(); });
  EXPECT_EQ(missing.kind, Kind::nonsense);
  EXPECT_EQ(missing.text, "step 0: qk_output is missing; it must be f32 [2,4,3,3]");
  const auto swapped = judged(
      s, [](std::size_t, kernels::StepResult& r) { std::swap(r.qk->shape[0], r.qk->shape[1]); });
  EXPECT_EQ(swapped.kind, Kind::nonsense);
}

}  // namespace
}  // namespace kvcheck::properties
