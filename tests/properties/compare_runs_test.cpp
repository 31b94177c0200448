// Two runs of the same tokens, compared by what is promised.
#include "properties/compare_runs.h"

#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "kernels/cpu/naive/cpu_naive.h"
#include "model/scenario_json.h"

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
  EXPECT_FALSE(compare_outputs(case_, other(), true).has_value());
  EXPECT_FALSE(compare_rows(case_, other(), 1, 1).has_value());
  EXPECT_EQ(shared_queries(case_, other()), 4);
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

}  // namespace
}  // namespace kvcheck::properties
