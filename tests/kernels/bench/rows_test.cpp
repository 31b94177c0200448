#include "kernels/bench/rows.h"

#include <algorithm>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace kvcheck::kernels::bench {
namespace {

const Row& row_of(const std::vector<Row>& rows, const std::string& id) {
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const Row& row) { return row.id == id; });
  if (found == rows.end()) throw std::runtime_error("no row " + id);
  return *found;
}

void expect_goal(const Row& row, const std::string& peer, double at_least, double aim) {
  for (const PeerGoal& each : row.peers) {
    if (each.peer != peer) continue;
    EXPECT_EQ(each.goal.at_least, at_least) << row.id;
    EXPECT_EQ(each.goal.aim, aim) << row.id;
    return;
  }
  ADD_FAILURE() << row.id << " has no peer " << peer;
}

TEST(Rows, IdsAreUnique) {
  std::set<std::string> ids;
  for (const Row& row : all_rows()) EXPECT_TRUE(ids.insert(row.id).second) << row.id;
}

TEST(Rows, EachHasAProblemThatCanBe) {
  for (const Row& row : all_rows()) {
    const Problem& p = row.problem;
    EXPECT_EQ(p.query_heads % p.kv_heads, 0) << row.id;
    EXPECT_EQ(p.operation == "windowed", p.capacity > 0) << row.id;
    EXPECT_TRUE(p.capacity == 0 || (p.window <= p.capacity && p.length > p.capacity)) << row.id;
    EXPECT_TRUE(row.peers.empty() || !row.other) << row.id;
  }
}

TEST(Rows, GoalsAreThoseOfTheProject) {
  const auto rows = all_rows();
  expect_goal(row_of(rows, "decode.f32.64/8/64.T128"), "onnxruntime", 4, 5.5);
  expect_goal(row_of(rows, "decode.f32.64/8/64.T32768"), "onnxruntime", 4, 5.5);
  expect_goal(row_of(rows, "decode.f32.32/8/128.T2048"), "onnxruntime", 3.7, 5);
  expect_goal(row_of(rows, "decode.f32.32/8/128.T8192"), "onnxruntime", 2.7, 3.3);
  expect_goal(row_of(rows, "decode.f32.64/8/64.T2048"), "jax", 1, 1.35);
  expect_goal(row_of(rows, "decode.f32.64/8/64.T8192"), "openvino", 1, 2.4);
  expect_goal(row_of(rows, "decode.f16.32/8/128.T512"), "onnxruntime", 6, 12);
  expect_goal(row_of(rows, "decode.int8.64/8/64.T512"), "onnxruntime", 3.7, 6);
  expect_goal(row_of(rows, "decode.int8.32/8/128.T512"), "onnxruntime", 2.6, 4);
  expect_goal(row_of(rows, "decode.int4.64/8/64.T512"), "onnxruntime", 3.5, 6);
  expect_goal(row_of(rows, "decode.int4.32/8/128.T512"), "onnxruntime", 3, 4);
  expect_goal(row_of(rows, "prefill.f32.64/8/64.S512"), "onnxruntime", 1.2, 2);
  expect_goal(row_of(rows, "prefill.f32.64/8/64.S2048"), "onnxruntime", 1.2, 1.5);
  expect_goal(row_of(rows, "prefill.f32.32/8/128.S2048"), "onnxruntime", 1.2, 1.3);
  expect_goal(row_of(rows, "prefill.f32.32/8/128.S512"), "openvino", 1, 1.1);
  expect_goal(row_of(rows, "prefill.bf16.64/8/64.S512"), "openvino", .8, 1.1);
  expect_goal(row_of(rows, "windowed.f32.64/8/64.W128.C132"), "onnxruntime", 3.5, 5);
  expect_goal(row_of(rows, "windowed.f32.64/8/64.W128.C384"), "onnxruntime", 3.5, 8);
  expect_goal(row_of(rows, "local_window.f32.64/8/64.W128.T8192"), "onnxruntime", 100, 200);
}

TEST(Rows, OwnGoalsAreThoseOfTheProject) {
  const auto rows = all_rows();
  const auto expect_own = [&](const std::string& id, double at_least, double aim) {
    const Row& row = row_of(rows, id);
    ASSERT_TRUE(row.other) << id;
    EXPECT_EQ(row.other->goal.at_least, at_least) << id;
    EXPECT_EQ(row.other->goal.aim, aim) << id;
  };
  expect_own("windowed_against_full.f32.64/8/64.W128.C384.T8192", 8.4, 40);
  expect_own("layout.f32.64/8/64.W128.C144", 1.35, 1.8);
  expect_own("threads.f32.64/8/64.T8192", 1.7, 1.9);
  const Row& decode = row_of(rows, "decode.f32.32/8/128.T512");
  EXPECT_EQ(decode.roof.at_least, .65);
  EXPECT_EQ(decode.roof.aim, .8);
}

TEST(Rows, OwnRowsDifferInOneThing) {
  const auto rows = all_rows();
  const Row& threads = row_of(rows, "threads.f32.64/8/64.T8192");
  EXPECT_EQ(threads.ours.threads, 2);
  EXPECT_EQ(threads.other->options.threads, 1);
  EXPECT_EQ(threads.problem, threads.other->problem);
  const Row& pages = row_of(rows, "huge_pages.f32.64/8/64.T8192");
  EXPECT_TRUE(pages.ours.huge_pages);
  EXPECT_FALSE(pages.other->options.huge_pages);
  const Row& layout = row_of(rows, "layout.f32.64/8/64.W128.C144");
  EXPECT_EQ(layout.problem.layout, "block");
  EXPECT_EQ(layout.other->problem.layout, "min_overflow");
}

TEST(Rows, PatternsMatchWholeIds) {
  EXPECT_TRUE(matches("decode.f32.*", "decode.f32.64/8/64.T128"));
  EXPECT_FALSE(matches("decode.f32", "decode.f32.64/8/64.T128"));
  EXPECT_TRUE(matches("*T?12", "decode.f32.64/8/64.T512"));
  EXPECT_FALSE(matches("*T?12", "decode.f32.64/8/64.T12"));
  EXPECT_TRUE(matches("*a*b", "xaxbxab"));
  EXPECT_FALSE(matches("*a*b", "xaxbxa"));
  EXPECT_TRUE(matches("*", ""));
  EXPECT_FALSE(matches("", "a"));
}

}  // namespace
}  // namespace kvcheck::kernels::bench
