// A wrong number of a device kernel comes with the store that left it: each planted fault that
// only numbers show is found with file and line in its kernel, and other findings stay as they are.
#include "properties/last_store.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>
#include <utility>

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

/// Files of a fault's kernel: decode ends in the merge of its splits.
std::vector<std::string> files_of(std::string_view kernel) {
  std::vector<std::string> files{"kernels/cuda/" + std::string(kernel) + ".cuh"};
  if (kernel == "decode") files.push_back("kernels/cuda/merge.cuh");
  return files;
}

/// The file and the line that follow `words` in the sentence, from 1 on; line 0 where none do.
std::pair<std::string, int> place_after(const std::string& sentence, const std::string& words) {
  const std::size_t at = sentence.find(words);
  const std::size_t colon = at == sentence.npos ? at : sentence.find(':', at + words.size());
  if (colon == sentence.npos) return {"", 0};
  const std::size_t begin = at + words.size();
  return {sentence.substr(begin, colon - begin), std::atoi(sentence.c_str() + colon + 1)};
}

std::string line_of(const std::pair<std::string, int>& place) {
  std::ifstream stream(std::string(KVCHECK_SOURCE_FOLDER) + "/" + place.first);
  std::string line;
  for (int i = 0; i < place.second; ++i) std::getline(stream, line);
  return line;
}

/// Whether the sentence names the line of a store, and by it or by the call that led to it one of
/// the files.
testing::AssertionResult names_store(const std::string& sentence,
                                     const std::vector<std::string>& files) {
  const auto store = place_after(sentence, " was stored at ");
  const auto call = place_after(sentence, ", called at ");
  const std::string line = line_of(store);
  if (line.find(" = ") == line.npos && line.find("store_") == line.npos) {
    return testing::AssertionFailure() << sentence << "\nwhere the line is: " << line;
  }
  for (const std::string& file : files) {
    if (store.first == file || call.first == file) return testing::AssertionSuccess();
  }
  return testing::AssertionFailure() << sentence;
}

class NumbersOfAFault : public testing::TestWithParam<device::DeviceFault> {};

TEST_P(NumbersOfAFault, AreFoundWithTheLineOfTheirStore) {
  const device::DeviceFault& fault = GetParam();
  const std::string name(fault.name), target = fault.int8_cache ? "cuda-simt-q8" : "cuda-simt";
  const Subject subject{target + "+" + name, "kernel", "device kernel", "",
                        [&] { return kernels::make_cuda_simt_planted(target, name); }};
  AuditOptions options;
  options.seconds = 200;
  options.further = 0;
  const SubjectResult result = audit_subject(subject, options);
  ASSERT_TRUE(result.killed);
  EXPECT_TRUE(names_store(result.sentence, files_of(fault.kernel)));
}

std::vector<device::DeviceFault> faults_of_numbers() {
  std::vector<device::DeviceFault> faults;
  for (const kernels::FaultInfo& info : kernels::cuda_simt_faults()) {
    for (const device::DeviceFault& fault : device::device_faults()) {
      const bool numbers = fault.caught_by == "values" || fault.caught_by == "rows";
      if (fault.name == info.name && numbers) faults.push_back(fault);
    }
  }
  return faults;
}

INSTANTIATE_TEST_SUITE_P(All, NumbersOfAFault, testing::ValuesIn(faults_of_numbers()),
                         [](const auto& fault) { return std::string(fault.param.name); });

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
  EXPECT_NE(sentence.find(" of unfused_values_kernel, launch "), std::string::npos) << sentence;
  EXPECT_TRUE(names_store(sentence, files_of("unfused")));
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
    EXPECT_TRUE(names_store(sentence, files_of("append")));
  }
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
  EXPECT_TRUE(names_store(finding.summary, files_of("unfused")));
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
