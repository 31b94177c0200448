#include "properties/bench/bench_run.h"

#include <cmath>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kvcheck::properties {
namespace {

namespace fs = std::filesystem;
using namespace kernels::bench;
using testing::HasSubstr;

Row small_row() {
  Row row;
  row.id = "decode.f32.2/1/8.T6";
  row.what = "decode";
  row.problem.query_heads = 2;
  row.problem.kv_heads = 1;
  row.problem.head_size = 8;
  row.problem.length = 6;
  row.peers = {{"onnxruntime", {4, 5.5}}};
  row.roof = {1e-9, 1e-8};
  return row;
}

/// Programs that stand in for a peer, each with one mistake.
class BenchRunTest : public testing::Test {
 protected:
  // A folder for each test: they may run at the same time.
  BenchRunTest()
      : folder_(fs::path(testing::TempDir()) /
                (std::string("kvcheck_bench_run_") +
                 testing::UnitTest::GetInstance()->current_test_info()->name())) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    settings_.target = "cpu-naive";
    settings_.row_seconds = .01;
  }
  ~BenchRunTest() override { fs::remove_all(folder_); }

  std::string fake(const std::string& mistake) {
    const fs::path program = folder_ / ("fake-" + mistake);
    std::ofstream(program) << "#!/bin/sh\nexec python3 -B " << KVCHECK_FAKE_PEER << " '" << mistake
                           << "'\n";
    fs::permissions(program, fs::perms::owner_all);
    return "exec:" + program.string();
  }

  std::vector<BenchRow> measure(const Row& row) {
    BenchRun run(settings_, options_);
    return run.measure(row);
  }

  fs::path folder_;
  BenchSettings settings_;
  kernels::RegistryOptions options_;
};

TEST_F(BenchRunTest, APeersTimesBecomeRatios) {
  settings_.peers = {fake("")};
  const auto rows = measure(small_row());
  ASSERT_EQ(rows.size(), 1u);
  const BenchRow& row = rows[0];
  EXPECT_EQ(row.why, "");
  EXPECT_EQ(row.peer, "fake 7.5");
  EXPECT_EQ(row.peer_ms, 2);  // Of 1, 2 and 3 ms.
  EXPECT_EQ(row.pairs, 5);
  EXPECT_GT(row.ours_ms, 0);
  EXPECT_EQ(row.quartiles.size(), 3u);
  EXPECT_EQ(row.quartiles[1], row.ratio);
  EXPECT_GT(row.bound_ratio, 0);
  EXPECT_LE(row.bound_ratio, 1);
  EXPECT_LT(row.peer_difference, 1e-5);
  EXPECT_GT(row.roof, 0);
  EXPECT_EQ(row.roof_status, GoalStatus::aim);
  EXPECT_EQ(row.status, GoalStatus::none) << "a program of the user has no goal";
  EXPECT_EQ(row.shape, "2/1/8");
  EXPECT_EQ(row.T, 6);
  EXPECT_EQ(row.flops, 4 * 2 * 8 * 6);
}

TEST_F(BenchRunTest, APeerWithOtherOutputsHasNoRatio) {
  for (const char* mistake : {"other-output", "nan-output"}) {
    settings_.peers = {fake(mistake)};
    const auto rows = measure(small_row());
    EXPECT_TRUE(std::isnan(rows[0].ratio)) << mistake;
    EXPECT_THAT(rows[0].why, HasSubstr("the outputs differ by"));
    EXPECT_GT(rows[0].ours_ms, 0) << "ours is measured alone";
  }
}

TEST_F(BenchRunTest, RefusalsAndDeathsAreSaid) {
  settings_.peers = {fake("refuses"), fake("dies")};
  const auto rows = measure(small_row());
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].why, "no such operator");
  EXPECT_THAT(rows[1].why, HasSubstr("out of memory"));
  for (const BenchRow& row : rows) {
    EXPECT_TRUE(std::isnan(row.ratio));
    EXPECT_GT(row.ours_ms, 0);
  }
}

TEST_F(BenchRunTest, AMissingPeerIsARowWithItsReason) {
  settings_.peers = {"onnxruntime"};
  const auto rows = measure(small_row());
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].peer, "onnxruntime");
  EXPECT_THAT(rows[0].why, HasSubstr("KVCHECK_ENVIRONMENTS"));
  EXPECT_EQ(rows[0].status, GoalStatus::not_measured);
  EXPECT_TRUE(std::isnan(rows[0].peer_ms));
}

TEST_F(BenchRunTest, WithoutPeersOursIsMeasuredAlone) {
  const auto rows = measure(small_row());
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].peer, "");
  EXPECT_EQ(rows[0].why, "none of its peers was asked for");
  EXPECT_GT(rows[0].ours_ms, 0);
}

TEST_F(BenchRunTest, OwnCodeRunsInPairs) {
  Row row = small_row();
  row.peers.clear();
  Problem longer = row.problem;
  longer.length = 300;
  row.other = OwnPeer{"own longer cache", longer, {}, {1e-6, 1e-5}};
  settings_.peers = {"onnxruntime"};
  const auto rows = measure(row);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].peer, "own longer cache");
  EXPECT_GE(rows[0].pairs, 31);
  EXPECT_GT(rows[0].ratio, 0);
  EXPECT_EQ(rows[0].status, GoalStatus::aim);
}

TEST_F(BenchRunTest, AStopEndsTheRowEarly) {
  settings_.peers = {fake("")};
  settings_.stop = [] { return true; };
  EXPECT_EQ(measure(small_row())[0].pairs, 1);
  Row row = small_row();
  row.other = OwnPeer{"own again", row.problem, {}, {1, 2}};
  row.peers.clear();
  const auto rows = measure(row);
  EXPECT_EQ(rows[0].pairs, 0);
  EXPECT_EQ(rows[0].status, GoalStatus::not_measured);
}

TEST_F(BenchRunTest, AWrongOutputIsNotTimed) {
  settings_.target = "cpu-naive+window_one_wide";
  Row row = small_row();
  row.problem.window = 3;
  const auto rows = measure(row);
  EXPECT_GT(rows[0].bound_ratio, 1);
  EXPECT_TRUE(std::isnan(rows[0].ours_ms));
  EXPECT_THAT(rows[0].why, HasSubstr("times its bound away"));
}

TEST_F(BenchRunTest, WhatATargetCannotDoIsSaid) {
  Row row = small_row();
  row.ours.share_group = false;
  EXPECT_THAT(measure(row)[0].why, HasSubstr("always shares"));
  settings_.target = "cpu-none";
  EXPECT_THROW(BenchRun(settings_, options_).target_text(), std::runtime_error);
}

}  // namespace
}  // namespace kvcheck::properties
