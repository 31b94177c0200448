// Names and limits of launches.
#include "model/launch.h"

#include <gtest/gtest.h>

#include "model/scenario.h"

namespace kvcheck::model {
namespace {

Scenario launched(const LaunchSpec& launch) {
  Scenario s;
  s.steps = {Append{{3}, {3}, 0}};
  s.launch = launch;
  return s;
}

void expect_refused(const LaunchSpec& launch, const std::string& field, const std::string& remedy) {
  const auto refusals = validate(launched(launch));
  ASSERT_EQ(refusals.size(), 1u);
  EXPECT_EQ(refusals[0].field, field);
  EXPECT_NE(refusals[0].remedy.find(remedy), std::string::npos) << refusals[0].remedy;
}

TEST(Launch, OrdersAndKernelsHaveTheNamesOfFiles) {
  EXPECT_EQ(to_string(LaunchOrder::lockstep), "lockstep");
  EXPECT_EQ(to_string(LaunchOrder::random), "random");
  EXPECT_EQ(to_string(LaunchOrder::reverse), "reverse");
  EXPECT_EQ(to_string(LaunchOrder::priority), "priority");
  EXPECT_EQ(to_string(LaunchOrder::starve), "starve");
  EXPECT_EQ(to_string(LaunchKernel::any), "any");
  EXPECT_EQ(to_string(LaunchKernel::unfused), "unfused");
  EXPECT_EQ(to_string(LaunchKernel::decode), "decode");
  EXPECT_EQ(to_string(LaunchKernel::decode_matrix), "decode_matrix");
  EXPECT_EQ(to_string(LaunchKernel::prefill), "prefill");
}

TEST(Launch, ThreadsAreWholeWarpsOfOneBlock) {
  for (const std::int64_t threads : {0, 32, 128, 1024}) {
    EXPECT_TRUE(validate(launched({.threads = threads})).empty()) << threads;
  }
  for (const std::int64_t threads : {-32, 1, 48, 1056}) {
    expect_refused({.threads = threads}, "launch.threads", "must be a multiple of 32 up to 1024");
  }
}

TEST(Launch, SplitsAreNotNegativeAndNoLongerThanASequence) {
  EXPECT_TRUE(validate(launched({.split_positions = 2147483647})).empty());
  for (const std::int64_t positions : {std::int64_t{-1}, std::int64_t{2147483648}}) {
    expect_refused({.split_positions = positions}, "launch.split_positions",
                   "must be between 0 and 2147483647");
  }
}

TEST(Launch, IsRepairedToTheNearestThatIsValid) {
  Scenario s = normalise(launched({.seed = 9, .threads = 47, .split_positions = -1}));
  ASSERT_TRUE(s.launch.has_value());
  EXPECT_EQ(*s.launch, (LaunchSpec{.seed = 9, .threads = 32}));
  s.launch->threads = 5000;
  EXPECT_EQ(normalise(s).launch->threads, 1024);
}

}  // namespace
}  // namespace kvcheck::model
