// What the answer to a scenario holds beside outputs: rows, intermediates, inputs, readings, lines.
#include "properties/commands/expect_answer.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "model/scenario_json.h"
#include "properties/commands/expect_command.h"

namespace kvcheck::properties {
namespace {

using Json = nlohmann::ordered_json;

Json step_of(const std::string& scenario, std::size_t step, bool inputs = true) {
  ExpectAnswer answer(model::parse_scenario(scenario));
  return answer.step(step, inputs);
}

TEST(ExpectAnswer, NamesThePositionOfEachRowWhereRowsAreNotInOrder) {
  const std::string ring = R"({"schema":1,"operator":"gqa",
      "cache":{"layout":"ring","capacity":4,"window_size":2},"steps":[{"append":6}]})";
  EXPECT_EQ(step_of(ring, 0)["resident"][0]["positions"], Json::parse("[4,5,2,3]"));
  const std::string block = R"({"schema":1,"operator":"gqa",
      "cache":{"layout":"block","capacity":4,"window_size":2},"steps":[{"append":6}]})";
  EXPECT_FALSE(step_of(block, 0)["resident"][0].contains("positions"));
}

TEST(ExpectAnswer, HandsOutTheIntermediateThatTheScenarioAsksFor) {
  const std::string scenario = R"({"schema":1,"operator":"attention","opset":23,"head_size":1,
      "causal":true,"qk_output":"biased","scale":0.5,"fill":{"kind":"literal"},
      "steps":[{"append":2,"q":[[[[2]],[[4]]]],"k":[[[[1]],[[3]]]],"v":[[[[1]],[[0]]]]}]})";
  const Json step = step_of(scenario, 0);
  EXPECT_EQ(step["qk_output"], Json::parse(R"([[[[1.0,"-inf"],[2.0,6.0]]]])"));
  EXPECT_EQ(step["qk_bound"][0][0][0][1], 0.0);
  EXPECT_GT(step["qk_bound"][0][0][1][1].get<double>(), 0);
  EXPECT_LT(step["qk_bound"][0][0][1][1].get<double>(), 1e-5);
  EXPECT_EQ(step["outputs"][0][0][0][0], "1");
}

TEST(ExpectAnswer, GivesEveryInputThatTheOperatorTakes) {
  const std::string scenario = R"({"schema":1,"operator":"gqa","batch":2,"query_heads":2,
      "kv_heads":2,"head_size":4,"head_sink":true,"qk_norm":{"epsilon":0.001},
      "rotary":{"dim":2,"position_ids":{"shift":1,"stride":2,"extra_columns":1}},
      "cache":{"quantisation":{"kind":"int8","per_channel":true}},
      "mask":{"kind":"additive","rank":4,"hidden_percent":0,"one_entry":true},
      "steps":[{"append":3},{"append":1}]})";
  const Json step = step_of(scenario, 1);
  EXPECT_EQ(step["head_sink"].size(), 2u);
  EXPECT_EQ(step["q_norm_weight"].size(), 4u);
  EXPECT_EQ(step["k_norm_weight"].size(), 4u);
  EXPECT_EQ(step["k_scale"].size(), 8u);
  EXPECT_EQ(step["v_scale"].size(), 8u);
  // Ids 1 + 2 p for positions 3 and 4 of either entry; the largest names the last row of the
  // tables.
  EXPECT_EQ(step["position_ids"], Json::parse("[[7,9],[7,9]]"));
  EXPECT_EQ(step["cos_cache"].size(), 10u);
  EXPECT_EQ(step["sin_cache"][0][0], 0.0);
  EXPECT_EQ(step["mask"].size(), 1u);  // Shared by the batch.
  EXPECT_EQ(step["mask"][0].size(), 2u);
  EXPECT_EQ(step["mask"][0][0].size(), 1u);
  EXPECT_EQ(step["mask"][0][0][0].size(), 4u);
  EXPECT_EQ(step["seqlens_k"], Json::parse("[3,3]"));
}

TEST(ExpectAnswer, ShowsAPastAsTheQuantisedCacheHoldsIt) {
  const std::string scenario = R"({"schema":1,"operator":"gqa","head_size":4,
      "cache":{"quantisation":{"kind":"int4"}},"fill":{"kind":"random","seed":3},
      "steps":[{"past":3},{"append":1}]})";
  const Json past = step_of(scenario, 0);
  const Json& tokens = past["k"][0];
  const double scale = step_of(scenario, 1)["k_scale"][0].get<double>();
  int not_zero = 0;
  for (const Json& token : tokens) {
    for (const Json& lane : token[0]) {
      const double code = lane.get<double>() / scale;
      EXPECT_EQ(code, std::round(code));
      EXPECT_LE(code, 7);
      EXPECT_GE(code, -8);
      not_zero += code != 0 ? 1 : 0;
    }
  }
  EXPECT_GT(not_zero, 4);
}

/// A file of its own that goes away with the test.
class LinesFile {
 public:
  explicit LinesFile(const std::string& text, const char* extension) {
    path_ = std::filesystem::temp_directory_path() /
            ("kvcheck_answer_" + std::to_string(::getpid()) + extension);
    std::ofstream(path_, std::ios::binary) << text;
  }
  ~LinesFile() { std::filesystem::remove(path_); }
  LinesFile(const LinesFile&) = delete;
  LinesFile& operator=(const LinesFile&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

TEST(ExpectLines, AnswersEachLineAndSaysWhichItCannot) {
  const std::string good = R"({"schema":1,"operator":"gqa","steps":[{"append":1}]})";
  const LinesFile file(good + "\n\n{\"schema\":1}\n" + good + "\n", ".jsonl");
  ExpectOptions options;
  options.file = file.path();
  options.json = true;
  std::ostringstream out, err;
  EXPECT_EQ(expect_command(options, out, err), 254);
  std::istringstream lines(out.str());
  std::string line;
  ASSERT_TRUE(std::getline(lines, line));
  EXPECT_EQ(Json::parse(line)["steps"].size(), 1u);
  ASSERT_TRUE(std::getline(lines, line));
  EXPECT_NE(Json::parse(line)["error"].get<std::string>().find("operator"), std::string::npos);
  ASSERT_TRUE(std::getline(lines, line));
  EXPECT_EQ(Json::parse(line)["steps"].size(), 1u);
  EXPECT_FALSE(std::getline(lines, line));
  options.json = false;
  std::ostringstream none, words;
  EXPECT_EQ(expect_command(options, none, words), 254);
  EXPECT_NE(words.str().find("add --json"), std::string::npos);
}

TEST(ExpectReadings, SayWhatTheScenarioIsBlindTo) {
  // One step: nothing tells a query's place from its index.
  const LinesFile file(
      R"({"schema":1,"operator":"gqa","cache":{"layout":"block","capacity":6,"window_size":4},)"
      R"("fill":{"kind":"random","seed":3},"steps":[{"append":7}]})",
      ".json");
  ExpectOptions options;
  options.file = file.path();
  options.readings = options.json = true;
  std::ostringstream out, err;
  ASSERT_EQ(expect_command(options, out, err), 0) << err.str();
  double last = 0;
  bool blind_to_top_left = false, sees_window = false;
  const Json document = Json::parse(out.str());
  for (const Json& one : document["readings"]) {
    const double separation = one["separation"].get<double>();
    EXPECT_GE(separation, last);
    last = separation;
    if (one["name"] == "causal.top_left") blind_to_top_left = separation <= 1;
    if (one["name"] == "window.one_more") sees_window = separation > 1000 && one.contains("at");
  }
  EXPECT_TRUE(blind_to_top_left);
  EXPECT_TRUE(sees_window);
  options.json = false;
  std::ostringstream text;
  ASSERT_EQ(expect_command(options, text, err), 0);
  EXPECT_NE(text.str().find("blind      causal.top_left"), std::string::npos);
}

}  // namespace
}  // namespace kvcheck::properties
