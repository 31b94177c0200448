// A run is a function of its seed; it replays the corpus, stops when told, and keeps one finding
// per signature.
#include "properties/search.h"

#include <filesystem>
#include <fstream>
#include <set>

#include <gtest/gtest.h>

#include "kernels/cpu/naive/cpu_naive.h"
#include "model/scenario_json.h"

namespace kvcheck::properties {
namespace {

namespace fs = std::filesystem;

class SearchTest : public testing::Test {
 protected:
  SearchTest() {
    root_ =
        fs::temp_directory_path() / (std::string("kvcheck_search_") +
                                     testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(root_);
    options_.failing = root_ / "failing";
    options_.origin = root_ / "origin";
    options_.corpus = {root_ / "regression"};
    options_.deadline = Clock::now() + std::chrono::minutes(5);
    options_.cases = 120;
    options_.seed = 11;
    for (const Property& property : catalog()) options_.properties.push_back(&property);
  }
  ~SearchTest() override { fs::remove_all(root_); }

  RunRecord run(std::string_view fault) {
    const auto target = fault.empty() ? kernels::make_cpu_naive() : kernels::make_cpu_naive(fault);
    RunRecord record;
    SearchObserver observer{[](const model::Scenario&) {}, [] {}, [](const FindingRecord&) {},
                            [](const std::string&) {}};
    Search(*target, options_, record, Clock::now(), observer).run();
    return record;
  }

  fs::path root_;
  SearchOptions options_;
};

TEST_F(SearchTest, TheSameSeedFindsTheSame) {
  const auto first = run("window_one_narrow");
  fs::remove_all(root_);
  const auto second = run("window_one_narrow");
  ASSERT_FALSE(first.findings.empty());
  ASSERT_EQ(first.findings.size(), second.findings.size());
  EXPECT_EQ(first.scenarios, second.scenarios);
  EXPECT_EQ(first.verdicts, second.verdicts);
  for (std::size_t i = 0; i < first.findings.size(); ++i) {
    EXPECT_EQ(first.findings[i].hash, second.findings[i].hash);
    EXPECT_EQ(first.findings[i].occurrences, second.findings[i].occurrences);
  }
}

TEST_F(SearchTest, KeepsOneFindingPerSignatureAndStoresIt) {
  const auto record = run("window_one_wide");
  std::set<std::string> signatures;
  for (const auto& finding : record.findings) {
    EXPECT_TRUE(signatures.insert(finding.property + std::string(to_string(finding.kind))).second);
    EXPECT_TRUE(fs::exists(options_.failing / finding.file));
    EXPECT_GE(finding.occurrences, 1);
  }
  EXPECT_GE(record.findings.size(), 2u);
}

TEST_F(SearchTest, IsGreenOnTheHealthyKernelAndCountsWhatItSaw) {
  const auto record = run("");
  EXPECT_TRUE(record.findings.empty());
  EXPECT_GT(record.scenarios, 120);
  const auto target = kernels::make_cpu_naive();
  for (const auto& entry : record.properties) {
    const auto& promise = find_property(entry.property)->promise;
    if (const auto reason = unpromised(target->capabilities(), promise); !reason.empty()) {
      EXPECT_EQ(entry.status, Verdict::skipped) << entry.property;
      EXPECT_EQ(entry.reason, reason);
      continue;
    }
    EXPECT_EQ(entry.status, Verdict::passed) << entry.property << ": " << entry.reason;
    EXPECT_GT(entry.scenarios, 0) << entry.property;
  }
  std::int64_t elements = 0;
  for (const auto& errors : record.errors) {
    for (const auto count : errors.histogram) elements += count;
    EXPECT_LE(errors.max_ratio, 1.0);
  }
  EXPECT_GT(elements, 1000);
}

TEST_F(SearchTest, ReplaysTheCorpusFirstAndPassesOverBrokenFiles) {
  shrinkers::CorpusEntry entry;
  entry.scenario = model::parse_scenario(R"({"schema":1,"operator":"attention","opset":23,
      "steps":[{"past":1},{"append":2,"queries":1}]})");
  shrinkers::save(entry, options_.corpus[0]);
  std::ofstream(options_.corpus[0] / "broken.json") << "{\"schema\": 1, ";
  const auto record = run("causal_skipped_single_query");
  ASSERT_FALSE(record.findings.empty());
  EXPECT_EQ(record.findings[0].first, entry.scenario);
  ASSERT_EQ(record.notes.size(), 1u);
  EXPECT_NE(record.notes[0].find("broken.json"), std::string::npos);
}

TEST_F(SearchTest, StopsWhenInterrupted) {
  const std::atomic<bool> interrupted{true};
  options_.interrupted = &interrupted;
  EXPECT_EQ(run("").scenarios, 0);
}

TEST_F(SearchTest, StopsAtTheDeadline) {
  options_.deadline = Clock::now();
  EXPECT_EQ(run("").scenarios, 0);
}

TEST(JudgeFresh, AnExceptionIsErroredNotFailed) {
  const Property throwing{
      "test.throws", "Throws.", "",
      [](const model::Scenario&, const kernels::Capabilities&) { return std::string(); },
      [](Case&) -> Judgement { throw std::runtime_error("own fault"); }};
  const auto target = kernels::make_cpu_naive();
  const auto judgement = judge_fresh(
      *target, model::parse_scenario(R"({"schema":1,"operator":"gqa","steps":[{"append":1}]})"),
      throwing);
  EXPECT_EQ(judgement.verdict, Verdict::errored);
  EXPECT_EQ(judgement.text, "own fault");
}

}  // namespace
}  // namespace kvcheck::properties
