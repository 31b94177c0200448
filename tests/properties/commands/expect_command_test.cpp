// The answer to a scenario, recomputed in the test from the inputs that the answer itself names.
#include "properties/commands/expect_command.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace kvcheck::properties {
namespace {

using nlohmann::json;

/// A file of its own that goes away with the test.
class ScenarioFile {
 public:
  explicit ScenarioFile(const std::string& text) {
    static int count = 0;
    path_ = std::filesystem::temp_directory_path() /
            ("kvcheck_expect_" + std::to_string(::getpid()) + "_" + std::to_string(count++));
    std::ofstream(path_, std::ios::binary) << text;
  }
  ~ScenarioFile() { std::filesystem::remove(path_); }
  ScenarioFile(const ScenarioFile&) = delete;
  ScenarioFile& operator=(const ScenarioFile&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

struct Outcome {
  int code = 0;
  std::string out, err;
};

Outcome run(const ExpectOptions& options) {
  std::ostringstream out, err;
  Outcome result;
  result.code = expect_command(options, out, err);
  result.out = out.str();
  result.err = err.str();
  return result;
}

Outcome run_text(const std::string& text, ExpectOptions options = {}) {
  const ScenarioFile file(text);
  options.file = file.path();
  return run(options);
}

json answer(const std::string& text, bool inputs = true, std::int64_t step = -1) {
  ExpectOptions options;
  options.json = true;
  options.inputs = inputs;
  options.step = step;
  const Outcome result = run_text(text, options);
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  return json::parse(result.out);
}

/// Keys and values by position, as the inputs of the steps build them up.
struct History {
  std::vector<std::vector<json>> keys, values;  ///< [batch][position] -> [KV head][lane]

  explicit History(std::size_t batch) : keys(batch), values(batch) {}

  void apply(const json& step, const json& lengths) {
    for (std::size_t b = 0; b < keys.size(); ++b) {
      const auto length = lengths[b].get<std::size_t>();
      for (std::size_t i = 0; i < step["k"][b].size(); ++i) {
        keys[b].push_back(step["k"][b][i]);
        values[b].push_back(step["v"][b][i]);
      }
      // Positions of a past that are gone hold nothing, since nothing may see them.
      while (keys[b].size() < length) {
        keys[b].insert(keys[b].begin(), json());
        values[b].insert(values[b].begin(), json());
      }
      keys[b].resize(length);
      values[b].resize(length);
    }
  }
};

double mask_at(const json& step, std::size_t b, std::size_t h, std::size_t i, std::size_t j,
               int rank) {
  if (!step.contains("mask")) return 0;
  json row = step["mask"];
  if (rank == 4) row = row[b];
  if (rank >= 3) row = row[h];
  const json element = row[i][j];
  if (element.is_number()) return element.get<double>();
  const bool kept = element.is_boolean() && element.get<bool>();
  return kept ? 0 : -INFINITY;
}

/// Softmax attention over the keys that the answer calls visible.
void expect_outputs_follow_from_inputs(const json& document, const json& step,
                                       const History& history) {
  const json& scenario = document["scenario"];
  const auto head_size = scenario["head_size"].get<std::size_t>();
  const auto group =
      scenario["query_heads"].get<std::size_t>() / scenario["kv_heads"].get<std::size_t>();
  const int rank = scenario.contains("mask") ? scenario["mask"]["rank"].get<int>() : 2;
  const double scale = scenario.value("scale", 1 / std::sqrt(static_cast<double>(head_size)));
  std::vector<std::size_t> asked(history.keys.size() * 64, 0);
  for (const json& one : step["visible"]) {
    const auto b = one["batch"].get<std::size_t>();
    const std::size_t only = one.contains("head") ? one["head"].get<std::size_t>() : SIZE_MAX;
    for (std::size_t h = 0; h < scenario["query_heads"].get<std::size_t>(); ++h) {
      if (only != SIZE_MAX && only != h) continue;
      const std::size_t i = asked[b * 64 + h]++;
      const json& query = step["q"][b][i][h];
      std::vector<double> logits;
      for (const json& key : one["keys"]) {
        double logit = 0;
        const json& row = history.keys[b][key.get<std::size_t>()][h / group];
        for (std::size_t c = 0; c < head_size; ++c) {
          logit += query[c].get<double>() * row[c].get<double>();
        }
        logits.push_back(scale * logit + mask_at(step, b, h, i, key.get<std::size_t>(), rank));
      }
      const double top = logits.empty() ? 0 : *std::max_element(logits.begin(), logits.end());
      double sum = 0;
      for (double& logit : logits) sum += logit = std::exp(logit - top);
      const json& output = step["outputs"][b][i][h];
      for (std::size_t c = 0; c < output.size(); ++c) {
        double expected = 0;
        for (std::size_t n = 0; n < logits.size(); ++n) {
          const auto key = one["keys"][n].get<std::size_t>();
          expected += logits[n] / sum * history.values[b][key][h / group][c].get<double>();
        }
        EXPECT_NEAR(std::stod(output[c].get<std::string>()), expected, 1e-12)
            << "entry " << b << " query " << i << " head " << h << " lane " << c;
        const double bound = step["bound"][b][i][h][c].get<double>();
        EXPECT_LT(bound, 0.1);
        EXPECT_EQ(bound > 0, !logits.empty());
      }
    }
  }
}

/// Number of outputs that were compared.
std::size_t check_whole(const std::string& text) {
  const json document = answer(text);
  const auto batch = document["scenario"]["batch"].get<std::size_t>();
  History history(batch);
  std::size_t outputs = 0;
  for (const json& step : document["steps"]) {
    history.apply(step, step["T"]);
    expect_outputs_follow_from_inputs(document, step, history);
    for (const json& entry : step["outputs"]) outputs += entry.size();
  }
  return outputs;
}

constexpr const char* kWindowed =
    R"({"schema":1,"operator":"gqa","batch":2,"query_heads":4,"kv_heads":2,"head_size":4,)"
    R"("cache":{"layout":"block","capacity":6,"window_size":4},"fill":{"kind":"random","seed":7},)"
    R"("steps":[{"past":[5,20]},{"append":[2,1]},{"append":[4,0],"queries":0},{"rollback":[1,0]},)"
    R"({"append":1}]})";

TEST(ExpectCommand, OutputsOfAWindowedCacheFollowFromTheInputs) {
  EXPECT_EQ(check_whole(kWindowed), 5u);
}

TEST(ExpectCommand, OutputsUnderMasksFollowFromTheInputs) {
  for (const char* kind : {"boolean", "additive"}) {
    for (int rank = 2; rank <= 4; ++rank) {
      const std::string text =
          std::string(R"({"schema":1,"operator":"attention","batch":2,"query_heads":4,)") +
          R"("kv_heads":2,"head_size":4,"value_head_size":3,"mask":{"kind":")" + kind +
          R"(","rank":)" + std::to_string(rank) +
          R"(,"empty_rows":true},"scale":0.7,"steps":[{"past":3},{"append":2},)" +
          R"({"append":1,"queries":4}]})";
      EXPECT_EQ(check_whole(text), 12u) << kind << rank;
    }
  }
}

TEST(ExpectCommand, OutputsOfAPaddedBufferFollowFromTheInputs) {
  const std::string text =
      R"({"schema":1,"operator":"attention","batch":2,"head_size":4,"value_head_size":4,)"
      R"("nonpad_kv_seqlen":true,"cache":{"capacity":8},"mask":{"kind":"boolean","rank":4},)"
      R"("steps":[{"append":[1,4],"queries":3},{"append":[2,0],"queries":1}]})";
  EXPECT_EQ(check_whole(text), 8u);
  const json document = answer(text);
  const json& first = document["steps"][0];
  EXPECT_EQ(first["nonpad_kv_seqlen"], json({1, 4}));
  EXPECT_EQ(first["visible"][0]["query_position"], -2);
  EXPECT_EQ(first["visible"][0]["keys"], json::array());
  // Mask over batch, head, query and the whole buffer.
  EXPECT_EQ(first["mask"].size(), 2u);
  EXPECT_EQ(first["mask"][1].size(), 1u);
  EXPECT_EQ(first["mask"][1][0].size(), 3u);
  EXPECT_EQ(first["mask"][1][0][2].size(), 8u);
}

TEST(ExpectCommand, NamesResidentRowsAndVisibleKeys) {
  const json document = answer(kWindowed);
  const json& steps = document["steps"];
  ASSERT_EQ(steps.size(), 5u);
  EXPECT_EQ(document["hash"].get<std::string>().size(), 16u);
  EXPECT_EQ(steps[0]["T"], json({5, 20}));
  EXPECT_EQ(steps[0]["does"], "past [5, 20]");
  // L(20) = 20 - 3 * ceil(14 / 3) = 5.
  EXPECT_EQ(steps[0]["resident"][1], json({{"batch", 1}, {"first_position", 15}, {"rows", 5}}));
  EXPECT_EQ(steps[0]["k"][1].size(), 5u);
  EXPECT_EQ(steps[0]["outputs"], json::array());
  EXPECT_FALSE(steps[0].contains("seqlens_k"));
  EXPECT_EQ(steps[1]["T"], json({7, 21}));
  EXPECT_EQ(steps[1]["seqlens_k"], json({6, 20}));
  EXPECT_EQ(steps[1]["total_sequence_length"], 21);
  EXPECT_EQ(steps[1]["resident"][0], json({{"batch", 0}, {"first_position", 3}, {"rows", 4}}));
  EXPECT_EQ(steps[1]["visible"],
            json({{{"batch", 0}, {"query_position", 5}, {"keys", {2, 3, 4, 5}}},
                  {{"batch", 0}, {"query_position", 6}, {"keys", {3, 4, 5, 6}}},
                  {{"batch", 1}, {"query_position", 20}, {"keys", {17, 18, 19, 20}}}}));
  EXPECT_EQ(steps[1]["outputs"][0].size(), 2u);
  EXPECT_EQ(steps[1]["outputs"][1].size(), 1u);
  EXPECT_EQ(steps[1]["outputs"][1][0].size(), 4u);
  EXPECT_EQ(steps[2]["visible"], json::array());
  EXPECT_EQ(steps[2]["k"][0].size(), 4u);
  EXPECT_EQ(steps[3]["does"], "rollback [1, 0]");
  EXPECT_EQ(steps[3]["T"], json({10, 21}));
}

TEST(ExpectCommand, GivesThirtyDigits) {
  // Q = 0 makes all weights equal: three keys, three lanes with a third each.
  const json document = answer(
      R"({"schema":1,"operator":"gqa","head_size":8,"fill":{"kind":"position_block","seed":0},)"
      R"("steps":[{"append":3}]})");
  std::vector<std::string> lanes;
  for (const json& lane : document["steps"][0]["outputs"][0][2][0]) {
    lanes.push_back(lane.get<std::string>());
  }
  std::sort(lanes.begin(), lanes.end());
  EXPECT_EQ(lanes, (std::vector<std::string>{
                       "0", "0", "0", "0", "0", "0.333333333333333333333333333333",
                       "0.333333333333333333333333333333", "0.333333333333333333333333333333"}));
}

TEST(ExpectCommand, BoundsGrowWithTheRoundingOfTheElementType) {
  const auto bound = [](const std::string& type) {
    const json document = answer(R"({"schema":1,"operator":"gqa","element_type":")" + type +
                                 R"(","steps":[{"append":4}]})");
    return document["steps"][0]["bound"][0][3][0][0].get<double>();
  };
  EXPECT_LT(bound("f64"), 1e-13);
  EXPECT_LT(bound("f64") * 1e6, bound("f32"));
  EXPECT_LT(bound("f32") * 10, bound("f16"));
  EXPECT_LT(bound("f16"), bound("bf16"));
}

TEST(ExpectCommand, SaysWhyStepsAfterAnInexactRollbackAreNotDefined) {
  const std::string text =
      R"({"schema":1,"operator":"gqa","cache":{"layout":"block","capacity":6,"window_size":4},)"
      R"("steps":[{"append":12},{"rollback":3},{"append":1}]})";
  const json steps = answer(text)["steps"];
  EXPECT_EQ(steps[0]["defined"], true);
  EXPECT_FALSE(steps[0].contains("why"));
  for (int i = 1; i <= 2; ++i) {
    EXPECT_EQ(steps[i]["defined"], false);
    EXPECT_NE(steps[i]["why"].get<std::string>().find("rollback of 3 at T=12 is not exact"),
              std::string::npos);
    EXPECT_EQ(steps[i]["resident"], json::array());
    EXPECT_EQ(steps[i]["visible"], json::array());
    EXPECT_EQ(steps[i]["outputs"], json::array());
    EXPECT_FALSE(steps[i].contains("q"));
  }
  EXPECT_EQ(steps[2]["T"], json({10}));
  EXPECT_NE(run_text(text).out.find("not defined: rollback of 3 at T=12"), std::string::npos);
}

TEST(ExpectCommand, ChoosesOneStepAndLeavesInputsOutUnlessAsked) {
  const json all = answer(kWindowed, false);
  const json one = answer(kWindowed, false, 4);
  ASSERT_EQ(one["steps"].size(), 1u);
  EXPECT_EQ(one["steps"][0]["step"], 4);
  EXPECT_EQ(one["steps"][0], all["steps"][4]);
  EXPECT_FALSE(one["steps"][0].contains("q"));
  EXPECT_FALSE(one["steps"][0].contains("seqlens_k"));
}

TEST(ExpectCommand, PrintsTextWithRangesAndBounds) {
  const Outcome result = run_text(kWindowed);
  EXPECT_EQ(result.code, 0);
  EXPECT_NE(result.out.find("step 1: append [2, 1]"), std::string::npos);
  EXPECT_NE(result.out.find("entry 0: rows 0-3 hold positions 3-6"), std::string::npos);
  EXPECT_NE(result.out.find("entry 1, query at position 20 sees 17-20"), std::string::npos);
  EXPECT_NE(result.out.find("output of entry 1, query 0, head 3"), std::string::npos);
  EXPECT_NE(result.out.find(" +- "), std::string::npos);
  EXPECT_EQ(result.out.find("q = "), std::string::npos);
  ExpectOptions inputs;
  inputs.inputs = true;
  EXPECT_NE(run_text(kWindowed, inputs).out.find("  k = [[["), std::string::npos);
}

TEST(ExpectCommand, RefusesInputThatItCannotAnswer) {
  const auto refused = [](const Outcome& result, const std::string& part) {
    EXPECT_EQ(result.code, 254);
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(result.err.rfind("expect: ", 0), 0u) << result.err;
    EXPECT_NE(result.err.find(part), std::string::npos)
        << "wanted " << part << " got " << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1);
  };
  ExpectOptions options;
  options.file = "/nonexistent/scenario.json";
  refused(run(options), "/nonexistent/scenario.json: cannot be opened");
  options.file = std::filesystem::temp_directory_path();
  refused(run(options), "is a folder; name a scenario file");
  refused(run_text("{"), "text = broken at byte");
  refused(run_text(std::string(5u << 20, ' ')), "must be at most 4194304 bytes");
  refused(run_text(R"({"schema":1,"operator":"gqa","steps":[{"rollback":1}]})"),
          "steps[0].rollback = 1: must be at most the 0 tokens");
  ExpectOptions step;
  step.step = 5;
  refused(run_text(kWindowed, step), "--step = 5: must be between 0 and 4");
  step.step = -2;
  refused(run_text(kWindowed, step), "--step = -2: must be between 0 and 4");
  refused(run_text(R"({"schema":1,"operator":"gqa","steps":[{"append":100000}]})"),
          "numbers, at most 4194304 are printed; choose one step with --step");
}

}  // namespace
}  // namespace kvcheck::properties
