// A wrong number of a device kernel comes with the store that left it: each planted fault that
// only numbers show is found with file and line in its kernel, and other findings stay as they are.
#include "properties/last_store.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "kernels/cpu/naive/cpu_naive.h"
#include "kernels/cuda/cuda_simt.h"
#include "kernels/cuda/planted.h"
#include "model/scenario_json.h"
#include "properties/audit/audit.h"
#include "properties/case_judge.h"
#include "properties/finding.h"
#include "properties/watch.h"

namespace kvcheck::properties {
namespace {

namespace device = kernels::device;

/// The lines of `file` from `first` on, as many as there are, up to `count`.
std::string lines_of(const std::string& file, int first, int count) {
  std::ifstream stream(std::string(KVCHECK_SOURCE_FOLDER) + "/" + file);
  std::string line, lines;
  for (int i = 1; i < first + count && std::getline(stream, line); ++i) {
    if (i >= first) lines += line + "\n";
  }
  return lines;
}

/// Whether the sentence names the place of a store, in a statement of at most three lines, or of a
/// defect, and a line of the kernel's own file.
testing::AssertionResult names_store(const std::string& sentence, std::string_view kernel) {
  const std::string own = "kernels/cuda/" + std::string(kernel) + ".cuh:";
  const std::size_t at = sentence.find(own);
  if (at == sentence.npos || std::atoi(sentence.c_str() + at + own.size()) < 1) {
    return testing::AssertionFailure() << "no line of " << own << " in: " << sentence;
  }
  const std::string words = " was stored at ";
  const std::size_t begin = sentence.find(words);
  if (begin == sentence.npos) {
    // What the runtime sees names the place itself.
    if (sentence.find(" at kernels/cuda/") != sentence.npos) return testing::AssertionSuccess();
    return testing::AssertionFailure() << sentence;
  }
  const std::size_t colon = sentence.find(':', begin);
  const std::string file = sentence.substr(begin + words.size(), colon - begin - words.size());
  const int line = std::atoi(sentence.c_str() + colon + 1);
  const std::string text = lines_of(file, line - 2, 3);
  if (text.find(" =") != text.npos || text.find("store_") != text.npos) {
    return testing::AssertionSuccess();
  }
  return testing::AssertionFailure() << sentence << "\nwhere the lines are:\n" << text;
}

const device::DeviceFault& fault_of(std::string_view name) {
  const auto faults = device::device_faults();
  return *std::find_if(faults.begin(), faults.end(),
                       [&](const device::DeviceFault& fault) { return fault.name == name; });
}

/// Faults of sessions that no check of the runtime is made for.
std::vector<std::string> faults_of_numbers() {
  std::vector<std::string> names;
  for (const kernels::FaultInfo& info : kernels::cuda_simt_faults()) {
    const std::string_view caught = fault_of(info.name).caught_by;
    if (caught == "values" || caught == "rows") names.push_back(info.name);
  }
  return names;
}

class NumbersOfAFault : public testing::TestWithParam<std::string> {};

TEST_P(NumbersOfAFault, AreFoundWithTheLineOfTheirStore) {
  const device::DeviceFault& fault = fault_of(GetParam());
  const std::string target = fault.int8_cache ? "cuda-simt-q8" : "cuda-simt";
  const Subject subject{target + "+" + GetParam(), "kernel", "device kernel", "",
                        [&] { return kernels::make_cuda_simt_planted(target, GetParam()); }};
  AuditOptions options;
  options.seconds = 200;
  options.further = 0;
  const SubjectResult result = audit_subject(subject, options);
  ASSERT_TRUE(result.killed);
  EXPECT_TRUE(names_store(result.sentence, fault.kernel));
}

INSTANTIATE_TEST_SUITE_P(All, NumbersOfAFault, testing::ValuesIn(faults_of_numbers()),
                         [](const auto& fault) { return fault.param; });

TEST(LastStore, TwentyTwoFaultsOfSessionsShowInNumbersAlone) {
  EXPECT_EQ(faults_of_numbers().size(), 22u);
}

model::Scenario scenario_of(const char* text) { return model::parse_scenario(text); }

/// Two queries of four heads on two KV heads.
constexpr const char* kHeads = R"({"schema":1,"operator":"gqa","query_heads":4,"kv_heads":2,
    "head_size":8,"launch":{"kernel":"unfused","order":"random","seed":4},
    "steps":[{"append":3},{"append":2}]})";

Judgement judged(kernels::Target& target, const model::Scenario& scenario, const char* property) {
  return judge_fresh(target, scenario, *find_property(property));
}

TEST(LastStore, OfAnOutputIsThatOfTheElementThatIsFarthestOff) {
  const auto target = kernels::make_cuda_simt_planted("cuda-simt", "unfused_wrong_head");
  const auto scenario = scenario_of(kHeads);
  const Judgement judgement = judged(*target, scenario, "values.within_bound");
  ASSERT_EQ(judgement.verdict, Verdict::failed);
  const std::string sentence = with_last_store(*target, scenario, judgement);
  ASSERT_TRUE(sentence.starts_with(judgement.text)) << sentence;
  // The element that the judgement names, in other words: "head 1, lane 5".
  const std::string head = "head " + std::to_string(judgement.hint.query_head);
  const std::size_t at = judgement.text.find(head + ", lane ");
  ASSERT_NE(at, std::string::npos) << judgement.text;
  const std::string lane = judgement.text.substr(at + head.size() + 2, 6);
  EXPECT_EQ(sentence.find("; after step 0 " + lane + " of the output (batch entry 0, query "),
            judgement.text.size())
      << sentence;
  EXPECT_NE(sentence.find(", " + head + ") was stored at "), std::string::npos) << sentence;
  EXPECT_NE(sentence.find(" of unfused_values_kernel (kernels/cuda/unfused.cuh:"),
            std::string::npos)
      << sentence;
  EXPECT_TRUE(names_store(sentence, "unfused"));
  // The run is the same each time, and so is what stored.
  EXPECT_EQ(with_last_store(*target, scenario, judgement), sentence);
}

TEST(LastStore, OfAWrongRowComesBeforeThatOfTheOutputsThatItSpoils) {
  const auto target = kernels::make_cuda_simt_planted("cuda-simt", "append_wrong_head");
  const auto scenario = scenario_of(kHeads);
  for (const char* property : {"cache.resident_range", "values.within_bound"}) {
    const Judgement judgement = judged(*target, scenario, property);
    ASSERT_EQ(judgement.verdict, Verdict::failed);
    const std::string sentence = with_last_store(*target, scenario, judgement);
    EXPECT_EQ(sentence.find("; after step 0 lane 0 of the key in row 0 (batch entry 0, KV head 1) "
                            "was stored at "),
              judgement.text.size())
        << sentence;
    EXPECT_TRUE(names_store(sentence, "append"));
  }
}

TEST(LastStore, OfAnOutputPassesOverRowsThatItDoesNotRead) {
  const auto target = kernels::make_cuda_simt_planted("cuda-simt", "append_wrong_head");
  const auto scenario = scenario_of(kHeads);
  Judgement judgement = judged(*target, scenario, "values.within_bound");
  ASSERT_GE(judgement.hint.query_head, 2);
  // Heads 0 and 1 read KV head 0, whose rows are right; the first output stands for all of them.
  judgement.hint.query_head = 1;
  const std::string sentence = with_last_store(*target, scenario, judgement);
  EXPECT_EQ(sentence.find("; after step 0 lane 0 of the output (batch entry 0, query 0, head 1) "),
            judgement.text.size())
      << sentence;
}

TEST(LastStore, OfACodeIsThatOfTheByteThatTheJudgementNames) {
  const auto target = kernels::make_cuda_simt_planted("cuda-simt-q8", "append_clamp_one_short");
  const auto scenario = scenario_of(R"({"schema":1,"operator":"gqa","query_heads":2,"kv_heads":2,
      "head_size":16,"cache":{"quantisation":{"kind":"int8"}},
      "steps":[{"append":3},{"append":2}]})");
  const Judgement judgement = judged(*target, scenario, "cache.quantised_codes");
  ASSERT_EQ(judgement.verdict, Verdict::failed) << judgement.text;
  const auto number_behind = [&](const std::string& words) {
    const std::size_t at = judgement.text.find(words);
    return at == judgement.text.npos ? -1 : std::atoi(judgement.text.c_str() + at + words.size());
  };
  const bool value = judgement.text.find(" the value of position ") != std::string::npos;
  const std::string sentence = with_last_store(*target, scenario, judgement);
  // In a full cache the row is the position.
  EXPECT_EQ(
      sentence.find(fmt::format(
          "; after step {} lane {} of the {} in row {} (batch entry 0, KV head {}) was stored "
          "at kernels/cuda/append.cuh:",
          judgement.hint.step, number_behind(": byte "), value ? "value" : "key",
          number_behind(" of position "), judgement.hint.query_head)),
      judgement.text.size())
      << sentence;
}

TEST(LastStore, LeavesOtherSentencesAsTheyAre) {
  const auto scenario = scenario_of(kHeads);
  const auto device = kernels::make_cuda_simt_planted("cuda-simt", "unfused_wrong_head");
  Judgement judgement = judged(*device, scenario, "values.within_bound");
  judgement.hint = {};
  EXPECT_EQ(with_last_store(*device, scenario, judgement), judgement.text);
  judgement.hint.step = 0;
  judgement.kind = Kind::defect;
  EXPECT_EQ(with_last_store(*device, scenario, judgement), judgement.text);
  judgement.kind = Kind::over_bound;
  EXPECT_NE(with_last_store(*device, scenario, judgement), judgement.text);
  // A target that records no stores.
  const auto naive = kernels::make_cpu_naive("causal_skipped_single_query");
  EXPECT_EQ(with_last_store(*naive, scenario, judgement), judgement.text);
}

TEST(LastStore, IsInAFindingAndNotInItsSignature) {
  const auto target = kernels::make_cuda_simt_planted("cuda-simt", "unfused_wrong_head");
  const auto scenario = scenario_of(kHeads);
  const Property& property = *find_property("values.within_bound");
  const Judgement judgement = judge_fresh(*target, scenario, property);
  // As a search runs it, watched.
  Watchdog watchdog(std::chrono::seconds(600), [](const WatchSlot&) { FAIL(); });
  const auto watched =
      watchdog.watch(kernels::make_cuda_simt_planted("cuda-simt", "unfused_wrong_head"));
  const FindingRecord finding = investigate(*watched, property, judgement, scenario, {});
  EXPECT_TRUE(names_store(finding.summary, "unfused"));
  EXPECT_EQ(finding.kind, Kind::over_bound);
  EXPECT_EQ(finding.rule, "");
  const auto& words = finding.evidence.words;
  EXPECT_NE(std::find(words.begin(), words.end(), "Finding: " + finding.summary + "."),
            words.end());
  // The minimal scenario fails in the same way when it is judged again.
  const Judgement again = judge_fresh(*target, finding.minimal, property);
  EXPECT_EQ(again.verdict, Verdict::failed);
  EXPECT_EQ(with_last_store(*target, finding.minimal, again), finding.summary);
}

}  // namespace
}  // namespace kvcheck::properties
