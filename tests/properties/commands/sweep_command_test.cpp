// The command line of sweeps: exit codes, JSON, saved scenarios, bad usage.
#include "properties/commands/sweep_command.h"

#include <filesystem>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "properties/sweep/grid.h"
#include "shrinkers/corpus.h"

namespace kvcheck::properties {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class SweepCommandTest : public testing::Test {
 protected:
  SweepCommandTest() {
    root_ =
        fs::temp_directory_path() / (std::string("kvcheck_sweep_") +
                                     testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(root_);
    options_.grid = "causal-past";
    options_.out = root_.string();
  }
  ~SweepCommandTest() override { fs::remove_all(root_); }

  int run() {
    std::ostringstream out, err;
    CommandContext context{out, err, {}, false, false, nullptr, kHeld};
    const int code = sweep_command(options_, context);
    out_ = out.str();
    err_ = err.str();
    return code;
  }

  SweepOptions options_;
  fs::path root_;
  std::string out_, err_;
};

TEST_F(SweepCommandTest, TheWholeGridOnABrokenKernelHasTheCountsOfTheThread) {
  options_.target = "cpu-naive+causal_skipped_single_query";
  options_.json = true;
  ASSERT_EQ(run(), kCounterexample) << err_;
  const json result = json::parse(out_);
  EXPECT_EQ(result["grid"], "causal-past");
  EXPECT_EQ(result["target"], options_.target);
  EXPECT_EQ(result["against"], nullptr);
  EXPECT_EQ(result["configurations"], 50688);
  EXPECT_EQ(result["diverge"], 4224);
  EXPECT_EQ(result["agree"], 46464);
  EXPECT_EQ(result["refused"], 0);
  EXPECT_EQ(result["explained"], 4224);
  EXPECT_GT(result["seconds"], 0);
  ASSERT_EQ(result["cells"].size(), 1u);
  const json& cell = result["cells"][0];
  EXPECT_EQ(cell["exact"], true);
  EXPECT_EQ(cell["explained_by"], "causal.skipped_for_one_query");
  EXPECT_EQ(cell["where"], (json{{"queries", {"1"}},
                                 {"new keys", {"2", "3", "4"}},
                                 {"past", {"1", "3"}},
                                 {"is_causal", {"1"}}}));
  const auto stored = shrinkers::load_file(cell["file"].get<std::string>());
  EXPECT_EQ(stored.entry.target, options_.target);
  EXPECT_EQ(stored.entry.property, "mask.visible_set");
  EXPECT_EQ(cell["replay"], "kvcheck replay " + stored.hash + " --out " + root_.string());
}

TEST_F(SweepCommandTest, BadUsageNamesTheRemedy) {
  options_.target = "cpu-naive";
  options_.grid = "causal";
  EXPECT_EQ(run(), kBadUsage);
  EXPECT_NE(err_.find("there are causal-past, windowed-small, tiles"), std::string::npos) << err_;
  options_.grid = "tiles";
  options_.workers = 1000;
  EXPECT_EQ(run(), kBadUsage);
  EXPECT_NE(err_.find("--workers 1000"), std::string::npos) << err_;
  options_.workers = 1;
  options_.target = "cpu-nothing";
  EXPECT_EQ(run(), kBadUsage);
  EXPECT_NE(err_.find("cpu-nothing"), std::string::npos) << err_;
}

TEST_F(SweepCommandTest, RefusalsOfEverythingDecideNothing) {
  options_.target = "cpu-naive-q8";
  EXPECT_EQ(run(), kUndecided);
  EXPECT_NE(out_.find("50,688 does not claim operator attention"), std::string::npos) << out_;
}

}  // namespace
}  // namespace kvcheck::properties
