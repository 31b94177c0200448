#include "properties/bench_record.h"

#include <cmath>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "model/scenario_json.h"

namespace kvcheck::properties {
namespace {

using Json = nlohmann::json;

BenchRow row(std::string what, std::int64_t T, double ms) {
  BenchRow made;
  made.id = what + std::to_string(T);
  made.what = std::move(what);
  made.shape = "64/8/64";
  made.element_type = "f32";
  made.T = T;
  made.ours_ms = ms;
  return made;
}

BenchRecord record() {
  BenchRecord made;
  made.tool = "kvcheck 0.1.0";
  made.target = "cpu-flash 0.1.0";
  made.load = {.5, 1};
  made.rows = {row("decode", 2048, .4)};
  made.rows[0].peer = "onnxruntime 1.32.0";
  made.rows[0].peer_ms = 2;
  made.rows[0].ratio = 5;
  made.rows[0].quartiles = {4.9, 5, 5.1};
  made.rows[0].noisy = true;
  made.rows[0].status = GoalStatus::reached;
  made.notes = {"a note"};
  return made;
}

std::string refusal(const std::string& text) {
  try {
    bench_record_from_json(text);
  } catch (const model::ScenarioError& error) {
    return error.what();
  }
  return "";
}

TEST(BenchRecord, GoalsAreReachedFromTheirValueOn) {
  EXPECT_EQ(goal_status(3.99, 4, 5.5), GoalStatus::missed);
  EXPECT_EQ(goal_status(4, 4, 5.5), GoalStatus::reached);
  EXPECT_EQ(goal_status(5.5, 4, 5.5), GoalStatus::aim);
  EXPECT_EQ(goal_status(kNotMeasured, 4, 5.5), GoalStatus::not_measured);
  EXPECT_EQ(goal_status(9, 0, 0), GoalStatus::none);
}

TEST(BenchRecord, ReadsBackWhatItWrote) {
  const std::string text = to_json(record());
  EXPECT_EQ(to_json(bench_record_from_json(text)), text);
  const BenchRecord again = bench_record_from_json(text);
  EXPECT_EQ(again.rows[0].ratio, 5);
  EXPECT_EQ(again.rows[0].status, GoalStatus::reached);
  EXPECT_TRUE(std::isnan(again.rows[0].roof));
}

TEST(BenchRecord, HasTheFieldsThatScriptsRelyOn) {
  const Json json = Json::parse(to_json(record()));
  const Json& found = json["rows"][0];
  EXPECT_EQ(found["id"], "decode2048");
  EXPECT_EQ(found["what"], "decode");
  EXPECT_EQ(found["shape"], "64/8/64");
  EXPECT_EQ(found["element_type"], "f32");
  EXPECT_EQ(found["T"], 2048);
  EXPECT_EQ(found["ours_ms"], .4);
  EXPECT_EQ(found["peer"], "onnxruntime 1.32.0");
  EXPECT_EQ(found["peer_ms"], 2);
  EXPECT_EQ(found["ratio"], 5);
  EXPECT_EQ(found["quartiles"], (Json{4.9, 5, 5.1}));
  EXPECT_EQ(found["noisy"], true);
  EXPECT_EQ(found["roof"], nullptr);
}

TEST(BenchRecord, RefusesWhatIsNoRecord) {
  EXPECT_EQ(refusal("{"), "bench record: is not JSON");
  EXPECT_EQ(refusal("{\"schema\": 1}"), "bench record: has no rows");
  EXPECT_EQ(refusal("{\"schema\": 2, \"rows\": []}"),
            "schema = 2: must be 1; this tool reads no other");
  EXPECT_EQ(refusal("{\"rows\": [{\"ratio\": \"five\"}]}"),
            "rows[0].ratio = \"five\": must be a number or null");
  EXPECT_EQ(refusal("{\"rows\": [{\"T\": 1.5}]}"), "rows[0].T = 1.5: must be a whole number");
  EXPECT_EQ(refusal("{\"rows\": [{\"status\": \"good\"}]}"),
            "rows[0].status = \"good\": must be no goal, not measured, missed, reached or aim "
            "reached");
  EXPECT_EQ(refusal("{\"rows\": {}}"), "rows = {}: must be a list");
}

TEST(BenchRecord, SlopesAreThoseOfPowers) {
  std::vector<BenchRow> rows;
  // T^0.5, and below T = 1025 anything.
  rows.push_back(row("decode", 512, 1000));
  for (const std::int64_t T : {2048, 8192, 32768}) {
    rows.push_back(row("decode", T, std::sqrt(static_cast<double>(T))));
  }
  rows.push_back(row("decode", 32768, 1000));  // Disturbed.
  const auto growth = growth_of(rows);
  ASSERT_EQ(growth.size(), 1u);
  EXPECT_EQ(growth[0].id, "growth.full.64/8/64");
  EXPECT_NEAR(growth[0].slope, .5, 1e-12);
  EXPECT_EQ(growth[0].T, (std::vector<std::int64_t>{2048, 8192, 32768}));
  EXPECT_EQ(growth[0].status, GoalStatus::missed);
}

TEST(BenchRecord, AFullCacheGrowsWithTAndAWindowedOneNot) {
  std::vector<BenchRow> rows = {row("decode", 2048, 1), row("decode", 8192, 4.3)};
  for (const std::int64_t T : {1024, 4096}) {
    rows.push_back(row("windowed", T, .25));
    rows.back().window = 128;
    rows.back().capacity = 384;
  }
  const auto growth = growth_of(rows);
  ASSERT_EQ(growth.size(), 2u);
  EXPECT_EQ(growth[0].status, GoalStatus::reached);  // log(4.3) / log(4) = 1.052
  EXPECT_EQ(growth[1].id, "growth.windowed.64/8/64.W128.C384");
  EXPECT_EQ(growth[1].slope, 0);
  EXPECT_EQ(growth[1].status, GoalStatus::reached);
}

TEST(BenchRecord, OneLengthHasNoSlope) { EXPECT_TRUE(growth_of({row("decode", 2048, 1)}).empty()); }

TEST(BenchRecord, AWrongOutputIsOneOutsideItsBound) {
  BenchRecord made = record();
  EXPECT_FALSE(made.wrong_output());
  EXPECT_EQ(made.compared(), 1);
  made.rows[0].bound_ratio = 1;
  EXPECT_FALSE(made.wrong_output());
  made.rows[0].bound_ratio = 1.01;
  EXPECT_TRUE(made.wrong_output());
}

}  // namespace
}  // namespace kvcheck::properties
