// Where runs are kept.
#include "properties/run_folder.h"

#include <cstdlib>
#include <fstream>

#include <gtest/gtest.h>

#include "model/scenario_json.h"

namespace kvcheck::properties {
namespace {

namespace fs = std::filesystem;

class RunFolderTest : public testing::Test {
 protected:
  // A folder for each test: they run at the same time in processes of their own.
  RunFolderTest()
      : store_{fs::temp_directory_path() /
               (std::string("kvcheck_run_folder_") +
                testing::UnitTest::GetInstance()->current_test_info()->name())} {
    fs::remove_all(store_.root);
  }
  ~RunFolderTest() override { fs::remove_all(store_.root); }
  Store store_;
};

TEST_F(RunFolderTest, TheNewestRunIsTheLast) {
  EXPECT_FALSE(store_.last_run().has_value());
  RunRecord record;
  record.seed = 5;
  RunFolder(store_, "20260101-1").write_record(record);
  record.seed = 6;
  const RunFolder second(store_, "20260102-2");
  EXPECT_FALSE(store_.last_run().has_value());  // It has no record yet.
  second.write_record(record);
  ASSERT_TRUE(store_.last_run().has_value());
  EXPECT_EQ(read_record(*store_.last_run()).seed, 6u);
}

TEST_F(RunFolderTest, LastNeverLeadsOutOfTheFolderOfRuns) {
  RunFolder(store_, "20260101-1").write_record({});
  fs::create_directories(store_.root / "elsewhere");
  std::ofstream(store_.root / "elsewhere" / "run.json") << "{}";
  for (const char* name : {"../elsewhere", "/etc", "..", ""}) {
    std::ofstream(store_.root / "last") << name << "\n";
    EXPECT_FALSE(store_.last_run().has_value()) << name;
  }
}

TEST_F(RunFolderTest, TheRunningScenarioIsThereUntilCleared) {
  const RunFolder folder(store_, "1");
  folder.write_current("cpu-naive", model::parse_scenario(
                                        R"({"schema":1,"operator":"gqa","steps":[{"append":1}]})"));
  EXPECT_TRUE(fs::exists(folder.path() / "current.json"));
  folder.clear_current();
  EXPECT_FALSE(fs::exists(folder.path() / "current.json"));
}

TEST_F(RunFolderTest, WhatIsNoRecordIsNamed) {
  fs::create_directories(store_.root);
  const fs::path file = store_.root / "run.json";
  std::ofstream(file) << "{}}";
  try {
    read_record(file);
    ADD_FAILURE() << "read";
  } catch (const model::ScenarioError& error) {
    EXPECT_NE(std::string(error.what()).find(file.string()), std::string::npos);
  }
  EXPECT_THROW(read_record(store_.root / "none.json"), model::ScenarioError);
}

TEST(Store, FollowsTheOptionThenTheVariable) {
  setenv("KVCHECK_OUT", "/tmp/by_variable", 1);
  EXPECT_EQ(Store::at("/tmp/by_option").root, "/tmp/by_option");
  EXPECT_EQ(Store::at("").root, "/tmp/by_variable");
  unsetenv("KVCHECK_OUT");
  EXPECT_EQ(Store::at("").root, ".kvcheck");
}

}  // namespace
}  // namespace kvcheck::properties
