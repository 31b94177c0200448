// Two runs of the same tokens, compared by what is promised.
#include "properties/compare_runs.h"

#include <cmath>
#include <cstring>
#include <functional>

#include <gtest/gtest.h>

#include "kernels/cpu/naive/cpu_naive.h"
#include "model/scenario_json.h"
#include "tests/properties/forwarding_session.h"
#include "tests/properties/model_target.h"

namespace kvcheck::properties {
namespace {

class CompareRuns : public testing::Test {
 protected:
  CompareRuns()
      : target_(kernels::make_cpu_naive()),
        case_(*target_, model::parse_scenario(R"({"schema":1,"operator":"gqa","head_size":8,
            "fill":{"kind":"random","seed":3},"steps":[{"append":3},{"append":1}]})")),
        other_(case_.execution()) {}

  OtherRun other() { return {case_.scenario(), case_.timeline(), other_}; }

  /// Moves one output of the last step by `ulps` units of the last place.
  void move_output(int ulps) {
    auto& bytes = other_.steps[1].result.output->bytes;
    float value = 0;
    std::memcpy(&value, bytes.data(), sizeof value);
    for (int i = 0; i < ulps; ++i) value = std::nextafterf(value, 1e9f);
    std::memcpy(bytes.data(), &value, sizeof value);
  }

  std::unique_ptr<kernels::Target> target_;
  Case case_;
  Execution other_;
};

TEST_F(CompareRuns, EqualRunsDoNotDiffer) {
  std::int64_t shared = 0;
  OtherRun counted{case_.scenario(), case_.timeline(), other_};
  counted.shared = &shared;
  EXPECT_FALSE(compare_outputs(case_, counted, true).has_value());
  EXPECT_FALSE(compare_rows(case_, other(), 1, 1).has_value());
  EXPECT_EQ(shared, 4);
}

TEST_F(CompareRuns, OneUlpDiffersOnlyWhereBitsArePromised) {
  move_output(1);
  EXPECT_FALSE(compare_outputs(case_, other(), false).has_value());
  const auto difference = compare_outputs(case_, other(), true);
  ASSERT_TRUE(difference.has_value());
  EXPECT_EQ(difference->hint.step, 1);
  EXPECT_NE(difference->sentence.find("position 3"), std::string::npos);
}

TEST_F(CompareRuns, MoreThanTwiceTheBoundDiffersInAnyCase) {
  move_output(100000);
  const auto difference = compare_outputs(case_, other(), false);
  ASSERT_TRUE(difference.has_value());
  EXPECT_GT(difference->ratio, 1);
}

/// What scaling excuses is said, so that it settles nothing else.
TEST_F(CompareRuns, SparesAndNamesWhatIsBelowTheSmallest) {
  bool spared = false;
  OtherRun tiny = other();
  tiny.smallest = 1e9;
  tiny.spared = &spared;
  EXPECT_FALSE(compare_outputs(case_, tiny, true).has_value());
  EXPECT_FALSE(spared);
  move_output(1);
  EXPECT_FALSE(compare_outputs(case_, tiny, true).has_value());
  EXPECT_TRUE(spared);
  tiny.smallest = 1e-9;
  EXPECT_TRUE(compare_outputs(case_, tiny, true).has_value());
}

TEST_F(CompareRuns, OnlyQueriesFromTheFirstStepOnCount) {
  move_output(1);
  EXPECT_TRUE(compare_outputs(case_, other(), true, 1).has_value());
  EXPECT_FALSE(compare_outputs(case_, other(), true, 2).has_value());
}

TEST_F(CompareRuns, OneBitOfARowDiffers) {
  other_.steps[1].result.rows->value.bytes[2 * 8 * 4] ^= std::byte{1};
  const auto difference = compare_rows(case_, other(), 1, 1);
  ASSERT_TRUE(difference.has_value());
  EXPECT_NE(difference->sentence.find("value of row 2"), std::string::npos);
  EXPECT_FALSE(compare_rows(case_, other(), 0, 0).has_value());
}

TEST(CompareRows, ComputedKeysMayDifferByTheirRoundingWhereNoBitsArePromised) {
  const auto scenario = model::parse_scenario(R"({"schema":1,"operator":"gqa","head_size":8,
      "rotary":{},"fill":{"seed":3},"steps":[{"append":3},{"append":1}]})");
  const auto target = make_model_target(scenario);
  Case main(*target, scenario);
  Execution copy = main.execution();
  const OtherRun other{main.scenario(), main.timeline(), copy};
  auto& bytes = copy.steps[1].result.rows->key.bytes;
  bytes[2 * 8 * 4] ^= std::byte{1};
  EXPECT_TRUE(compare_rows(main, other, 1, 1).has_value());
  EXPECT_FALSE(compare_rows(main, other, 1, 1, false).has_value());
  bytes[2 * 8 * 4 + 2] ^= std::byte{1};
  EXPECT_TRUE(compare_rows(main, other, 1, 1, false).has_value());
  bytes[2 * 8 * 4 + 2] ^= std::byte{1};
  copy.steps[1].result.rows->value.bytes[0] ^= std::byte{1};
  EXPECT_TRUE(compare_rows(main, other, 1, 1, false).has_value());
}

using Edit = std::function<void(kernels::StepResult&)>;

/// cpu-naive whose every step is edited before it is handed out.
class EditedSession final : public ForwardingSession {
 public:
  EditedSession(std::unique_ptr<kernels::Session> inner, const Edit& edit)
      : ForwardingSession(std::move(inner)), edit_(edit) {}
  kernels::Answer<kernels::StepResult> step(const kernels::StepRequest& request) override {
    auto answer = ForwardingSession::step(request);
    edit_(std::get<kernels::StepResult>(answer));
    return answer;
  }

 private:
  const Edit& edit_;
};

class EditedTarget final : public kernels::Target {
 public:
  explicit EditedTarget(Edit edit) : edit_(std::move(edit)), inner_(kernels::make_cpu_naive()) {}
  const kernels::Capabilities& capabilities() const override { return inner_->capabilities(); }
  kernels::Answer<std::unique_ptr<kernels::Session>> open(
      const kernels::SessionConfig& config) override {
    auto opened = inner_->open(config);
    return std::make_unique<EditedSession>(
        std::move(std::get<std::unique_ptr<kernels::Session>>(opened)), edit_);
  }

 private:
  Edit edit_;
  std::unique_ptr<kernels::Target> inner_;
};

/// What differs between an execution and the same one with `edit` done to its step 1.
std::optional<Difference> difference_by(Case& main, const Edit& edit, bool bitwise) {
  Execution changed = main.execution();
  edit(changed.steps[1].result);
  return compare_outputs(main, {main.scenario(), main.timeline(), changed}, bitwise);
}

model::Scenario two_steps() {
  return model::parse_scenario(R"({"schema":1,"operator":"gqa","head_size":8,
      "steps":[{"append":3},{"append":1}]})");
}

TEST(CompareOutputs, BitsOfNaNCountWhereBitsArePromised) {
  const auto first_output = [](std::uint32_t bits) -> Edit {
    return [bits](kernels::StepResult& result) {
      std::memcpy(result.output->bytes.data(), &bits, sizeof bits);
    };
  };
  EditedTarget target(first_output(0x7fc00000));
  Case main(target, two_steps());
  EXPECT_FALSE(difference_by(main, first_output(0x7fc00000), true).has_value());
  EXPECT_TRUE(difference_by(main, first_output(0x7fc00001), true).has_value());
  EXPECT_FALSE(difference_by(main, first_output(0x7fc00001), false).has_value());
}

TEST(CompareOutputs, IntermediatesAreComparedKeyByKeyUpToTheLengthThatBothHave) {
  // Step 1 asks one query at T=4: keys 0..3. What stands in column 4 belongs to no key.
  const auto qk_with = [](std::int64_t key) -> Edit {
    return [key](kernels::StepResult& result) {
      result.qk = kernels::Tensor::zeros(kernels::ElementType::f32, {1, 1, 3, 5});
      if (key >= 0) result.qk->bytes[static_cast<std::size_t>(key) * 4] = std::byte{1};
    };
  };
  EditedTarget target(qk_with(-1));
  Case main(target, two_steps());
  EXPECT_FALSE(difference_by(main, qk_with(-1), true).has_value());
  EXPECT_FALSE(difference_by(main, qk_with(4), true).has_value());
  const auto difference = difference_by(main, qk_with(3), true);
  ASSERT_TRUE(difference.has_value());
  EXPECT_NE(difference->sentence.find("qk_output of key 3"), std::string::npos);
  EXPECT_FALSE(difference_by(main, qk_with(3), false).has_value());
}

TEST(CompareOutputs, ARepeatedQuestionIsComparedWithItsOwnRepetition) {
  // Steps 1 and 2 ask the same query of the same cache, and the target answers the second wrongly.
  int steps = 0;
  EditedTarget target([&](kernels::StepResult& result) {
    if (steps++ == 2) result.output->bytes[2] ^= std::byte{1};
  });
  Case main(target, model::parse_scenario(R"({"schema":1,"operator":"gqa","head_size":8,
      "steps":[{"append":3},{"append":0,"queries":1},{"append":0,"queries":1}]})"));
  const auto difference = difference_by(
      main, [](kernels::StepResult&) {}, true);
  EXPECT_FALSE(difference.has_value()) << difference->sentence;
  EXPECT_TRUE(difference_by(
                  main, [](kernels::StepResult& r) { r.output->bytes[2] ^= std::byte{1}; }, true)
                  .has_value());
}

TEST(CompareRows, MatchesPositionsOfCachesThatHaveEvictedUnlikeNumbers) {
  // T=7, W=4, C=4: G=1, positions 3..6 are left in rows 0..3. A full cache holds all seven.
  const auto target = kernels::make_cpu_naive();
  Case windowed(*target, model::parse_scenario(R"({"schema":1,"operator":"gqa","head_size":8,
      "cache":{"layout":"block","capacity":4,"window_size":4},"steps":[{"append":7}]})"));
  Case full(*target, model::parse_scenario(R"({"schema":1,"operator":"gqa","head_size":8,
      "cache":{"window_size":4},"steps":[{"append":7}]})"));
  Execution run = full.execution();
  const OtherRun other{full.scenario(), full.timeline(), run};
  EXPECT_FALSE(compare_rows(windowed, other, 0, 0).has_value());
  run.steps[0].result.rows->key.bytes[2 * 8 * 4] ^= std::byte{1};  // Evicted from the other.
  EXPECT_FALSE(compare_rows(windowed, other, 0, 0).has_value());
  run.steps[0].result.rows->key.bytes[3 * 8 * 4] ^= std::byte{1};
  const auto difference = compare_rows(windowed, other, 0, 0);
  ASSERT_TRUE(difference.has_value());
  EXPECT_NE(difference->sentence.find("key of row 0 (position 3)"), std::string::npos);
}

}  // namespace
}  // namespace kvcheck::properties
