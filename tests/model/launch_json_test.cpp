// Launches as JSON: every field is written, and read back; what is not known is refused.
#include "model/launch_json.h"

#include <string>

#include <gtest/gtest.h>

#include "model/scenario_json.h"

namespace kvcheck::model {
namespace {

/// The message of the ScenarioError that `text` gives.
std::string error_of(const std::string& text) {
  try {
    LaunchSpec launch;
    read_launch(Json::parse(text), launch);
  } catch (const ScenarioError& error) {
    return error.what();
  }
  return "";
}

TEST(LaunchJson, SaysEveryFieldWithItsDefault) {
  EXPECT_EQ(launch_json({}), Json::parse(R"({"order":"lockstep","seed":0,"kernel":"any","threads":0,
                            "split_positions":0})"));
}

TEST(LaunchJson, ReadsBackWhatItWrote) {
  const LaunchSpec launch{LaunchOrder::priority, 0xffffffffffffffffu, LaunchKernel::decode_matrix,
                          96, 512};
  LaunchSpec read;
  read_launch(launch_json(launch), read);
  EXPECT_EQ(read, launch);
}

TEST(LaunchJson, TakesDefaultsForWhatIsLeftOut) {
  LaunchSpec launch;
  read_launch(Json::parse(R"({"order":"starve"})"), launch);
  EXPECT_EQ(launch, LaunchSpec{.order = LaunchOrder::starve});
}

TEST(LaunchJson, RefusesByFieldAndValue) {
  const std::string order = error_of(R"({"order":"shuffled"})");
  EXPECT_NE(order.find("launch.order"), std::string::npos) << order;
  EXPECT_NE(order.find("shuffled"), std::string::npos) << order;
  EXPECT_NE(order.find("lockstep"), std::string::npos) << order;
  const std::string kernel = error_of(R"({"kernel":"fused"})");
  EXPECT_NE(kernel.find("launch.kernel"), std::string::npos) << kernel;
  const std::string unknown = error_of(R"({"blocks":3})");
  EXPECT_NE(unknown.find("blocks"), std::string::npos) << unknown;
}

TEST(LaunchJson, IsPartOfAScenarioThatHasOne) {
  Scenario s;
  s.steps = {Append{{3}, {3}, 0}};
  EXPECT_EQ(canonical_text(s).find("launch"), std::string::npos);
  s.launch = LaunchSpec{LaunchOrder::reverse, 4, LaunchKernel::prefill, 64, 0};
  EXPECT_EQ(parse_scenario(canonical_text(s)).launch, s.launch);
}

}  // namespace
}  // namespace kvcheck::model
