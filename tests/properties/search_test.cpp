// A run is a function of its seed; it replays the corpus, stops when told, and keeps one finding
// per signature.
#include "properties/search.h"

#include <filesystem>
#include <set>
#include <sstream>
#include <stdexcept>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

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
    options_.deadline = Clock::now() + std::chrono::minutes(5);
    options_.cases = 120;
    options_.seed = 11;
    for (const Property& property : catalog()) options_.properties.push_back(&property);
  }
  ~SearchTest() override { fs::remove_all(root_); }

  RunRecord run(std::string_view fault) {
    const auto target = fault.empty() ? kernels::make_cpu_naive() : kernels::make_cpu_naive(fault);
    RunRecord record;
    options_.make_target = [fault] {
      return fault.empty() ? kernels::make_cpu_naive() : kernels::make_cpu_naive(fault);
    };
    Search(*target, options_, record, Clock::now(), observer_).run();
    return record;
  }

  fs::path root_;
  SearchOptions options_;
  SearchObserver observer_;
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

TEST_F(SearchTest, ReplaysNamedScenariosAndTheCorpusFirst) {
  shrinkers::CorpusEntry entry;
  entry.scenario = model::parse_scenario(R"({"schema":1,"operator":"attention","opset":23,
      "steps":[{"past":1},{"append":2,"queries":1}]})");
  options_.corpus = {entry};
  const auto record = run("causal_skipped_single_query");
  ASSERT_FALSE(record.findings.empty());
  EXPECT_EQ(record.findings[0].first, entry.scenario);
  EXPECT_EQ(record.findings[0].phase, "corpus");
  options_.named = {entry.scenario};
  EXPECT_EQ(run("causal_skipped_single_query").findings[0].phase, "named");
}

TEST_F(SearchTest, PassesOverCorpusEntriesOfOtherTargets) {
  shrinkers::CorpusEntry entry;
  entry.target = "onnxruntime";
  entry.scenario = model::parse_scenario(R"({"schema":1,"operator":"gqa","steps":[{"append":1}]})");
  options_.corpus = {entry};
  options_.phases = {Phase::corpus};
  EXPECT_EQ(run("").scenarios, 0);
}

/// A record without what time alone decides.
nlohmann::ordered_json timeless(RunRecord record) {
  record.workers = 1;
  for (auto& phase : record.phases) phase.draw_seconds = phase.judge_seconds = 0;
  for (auto& finding : record.findings) finding.seconds = 0;
  return to_json(record);
}

TEST_F(SearchTest, AnyNumberOfWorkersGivesTheSameRecord) {
  for (const std::size_t workers : {2, 3}) {
    options_.workers = 1;
    const auto alone = run("window_one_wide");
    fs::remove_all(root_);
    options_.workers = workers;
    const auto together = run("window_one_wide");
    fs::remove_all(root_);
    EXPECT_GE(alone.findings.size(), 2u);
    EXPECT_EQ(timeless(alone), timeless(together));
  }
}

/// Ends a search as a kill does, at the end of a case.
class Killed : public std::runtime_error {
 public:
  Killed() : std::runtime_error("killed") {}
};

TEST_F(SearchTest, AKilledSearchGoesOnToTheSameRecord) {
  options_.cases = 150;
  const auto target = kernels::make_cpu_naive("window_one_narrow");
  RunRecord whole;
  int last = 0;
  SearchObserver observer;
  observer.tick = [&] { ++last; };
  Search(*target, options_, whole, Clock::now(), observer).run();
  ASSERT_GT(last, 10);
  for (const int moment : {1, last / 4, 3 * last / 4, last - 2, last - 1}) {
    fs::remove_all(root_);
    RunRecord record, written;
    int ticks = 0;
    observer.tick = [&] {
      written = run_record_from_json(to_json(record));
      if (++ticks == moment) throw Killed();
    };
    EXPECT_THROW(Search(*target, options_, record, Clock::now(), observer).run(), Killed);
    EXPECT_LT(written.scenarios, whole.scenarios);
    Search(*target, options_, written, Clock::now(), {}).run();
    EXPECT_EQ(timeless(written), timeless(whole)) << moment;
  }
}

TEST_F(SearchTest, AFindingIsInTheRecordBeforeItIsShrunkAndAResumedSearchShrinksIt) {
  const auto target = kernels::make_cpu_naive("window_one_wide");
  options_.phases = {Phase::lattice};
  RunRecord record, written;
  SearchObserver observer;
  observer.on_failure = [&] {
    written = run_record_from_json(to_json(record));
    throw Killed();
  };
  EXPECT_THROW(Search(*target, options_, record, Clock::now(), observer).run(), Killed);
  ASSERT_FALSE(written.findings.empty());
  for (const auto& finding : written.findings) {
    EXPECT_FALSE(finding.investigated);
    EXPECT_FALSE(finding.is_minimal);
    EXPECT_TRUE(fs::exists(options_.failing / finding.file));
  }
  Search(*target, options_, written, Clock::now(), {}).run();
  fs::remove_all(root_);
  RunRecord whole;
  Search(*target, options_, whole, Clock::now(), {}).run();
  EXPECT_EQ(timeless(written), timeless(whole));
}

TEST_F(SearchTest, TheTargetedPhaseStartsFromWhatCameNearestToItsBound) {
  const auto record = run("");
  ASSERT_FALSE(record.candidates.empty());
  EXPECT_LE(record.candidates.size(), 32u);
  const auto& phase = record.phases.back();
  EXPECT_EQ(phase.phase, "targeted");
  EXPECT_EQ(phase.cases + phase.rejected, 120 * 15 / 100);
}

TEST_F(SearchTest, KeepsWhatCameNearToItsBoundBetweenRuns) {
  options_.near = root_ / "near";
  run("");
  const auto first = shrinkers::load_folder(options_.near).entries.size();
  EXPECT_GT(first, 0u);
  EXPECT_LE(first, 8u);
  options_.seed = 12;
  run("");
  EXPECT_LE(shrinkers::load_folder(options_.near).entries.size(), 8u);
}

TEST_F(SearchTest, WritesALineForEachCaseInOrder) {
  options_.observations = true;
  options_.workers = 2;
  std::string lines;
  observer_.on_observations = [&](const std::string& more) { lines += more; };
  const auto record = run("window_one_wide");
  std::istringstream in(lines);
  std::string line;
  std::int64_t count = 0;
  std::set<std::string> statuses;
  for (; std::getline(in, line); ++count) {
    const auto json = nlohmann::json::parse(line);
    for (const char* name : {"type", "run_start", "property", "status", "representation",
                             "arguments", "how_generated", "features", "coverage"}) {
      EXPECT_TRUE(json.contains(name)) << name;
    }
    statuses.insert(json["status"]);
  }
  EXPECT_EQ(count, record.scenarios);
  EXPECT_TRUE(statuses.count("failed") && statuses.count("passed"));
}

TEST_F(SearchTest, WhatTheLedgerExplainsIsCountedApart) {
  options_.known = [](Case&, const Property& property, const Judgement&) {
    return property.id == "mask.visible_set" ? std::string("entry.json") : std::string();
  };
  const auto record = run("window_one_wide");
  for (const auto& finding : record.findings) {
    EXPECT_EQ(finding.known, finding.property == "mask.visible_set" ? "entry.json" : "");
  }
  for (const auto& entry : record.properties) {
    if (entry.property != "mask.visible_set") continue;
    EXPECT_GT(entry.known, 0);
    EXPECT_EQ(entry.failed, 0);
    EXPECT_EQ(entry.status, Verdict::passed);
  }
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
