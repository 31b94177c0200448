// The joined view of contract and evidence.
#include "reports/case_view.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "tests/reports/sample_records.h"

namespace kvcheck::reports {
namespace {

TEST(CaseView, TakesLengthsFromTheContract) {
  const auto record = samples::record("rows_after_rollback");
  const CaseView view = make_case_view(record.findings[0]);
  ASSERT_EQ(view.steps.size(), 5u);
  EXPECT_EQ(view.buffer_rows, 6);
  EXPECT_EQ(view.window, 4);
  EXPECT_EQ(view.steps[2].entries[0].rolled_back, 2);
  EXPECT_EQ(view.steps[2].entries[0].resident, 4);
  EXPECT_EQ(view.steps[4].entries[0].evicted, 3);
  EXPECT_TRUE(view.steps[4].entries[0].staged);
  EXPECT_EQ(view.failing_step(), &view.steps[3]);
}

TEST(CaseView, AgreesWithTheEvidenceOfEverySample) {
  for (const char* name : {"leak", "missing_key", "rows_after_rollback", "over_bound", "large"}) {
    const auto record = samples::record(name);
    const CaseView view = make_case_view(record.findings[0]);
    for (const StepView& step : view.steps) {
      ASSERT_NE(step.evidence, nullptr);
      for (std::size_t b = 0; b < step.entries.size(); ++b) {
        EXPECT_EQ(step.entries[b].length, step.evidence->entries[b].length) << name;
        EXPECT_EQ(step.entries[b].resident, step.evidence->entries[b].resident) << name;
        EXPECT_EQ(step.entries[b].evicted, step.evidence->entries[b].evicted) << name;
        EXPECT_EQ(step.entries[b].staged, step.evidence->entries[b].staged) << name;
      }
    }
  }
}

TEST(CaseView, SaysWhyARefusedCaseHasNoTimeline) {
  const auto record = samples::record("errored");
  const CaseView view = make_case_view(record.findings[1]);
  EXPECT_FALSE(view.timeline.has_value());
  EXPECT_NE(view.no_timeline.find("cache.capacity = 3"), std::string::npos);
  EXPECT_EQ(view.steps[0].entries[0].resident, 3) << "what was recorded stays";
}

TEST(CaseView, HasNoFailingStepOutsideTheCase) {
  auto record = samples::record("leak");
  record.findings[0].evidence.failing_step = 99;
  EXPECT_EQ(make_case_view(record.findings[0]).failing_step(), nullptr);
  record.findings[0].evidence.failing_step = -1;
  EXPECT_EQ(make_case_view(record.findings[0]).failing_step(), nullptr);
}

TEST(WindowAround, KeepsTheCenterInside) {
  for (const std::int64_t center : {-1, 0, 1, 49, 50, 98, 99}) {
    const Shown shown = window_around(100, center, 10);
    EXPECT_EQ(shown.end - shown.begin, 10u);
    EXPECT_LE(shown.end, 100u);
    if (center >= 0) {
      EXPECT_LE(static_cast<std::int64_t>(shown.begin), center);
      EXPECT_GT(static_cast<std::int64_t>(shown.end), center);
    }
  }
  EXPECT_TRUE(window_around(10, 3, 10).all());
}

TEST(ShownNote, StatesTotalAndRule) {
  EXPECT_EQ((Shown{0, 5, 5}).note("steps"), "");
  EXPECT_EQ((Shown{0, 5, 9}).note("steps"),
            "The first 5 of 9 steps are shown; all are in run.json.");
  EXPECT_EQ((Shown{180, 241, 4096}).note("steps"),
            "Shown: steps 180 to 240 of 4,096, around the first divergence; all are in run.json.");
}

TEST(ReplayCommand, NamesTheHashAndElseTheFile) {
  properties::FindingRecord finding;
  EXPECT_EQ(replay_command(finding), "./kvcheck replay last");
  finding.file = "failing/a b.json";
  EXPECT_EQ(replay_command(finding), "./kvcheck replay 'failing/a b.json'");
  finding.hash = "3f9a";
  EXPECT_EQ(replay_command(finding), "./kvcheck replay 3f9a");
}

TEST(ShapeFacts, SpeakTheWordsOfTheOperator) {
  const auto record = samples::record("leak");
  const auto facts = shape_facts(record.findings[0].minimal);
  EXPECT_EQ(facts[0].second, "Attention, opset 23");
  const auto windowed = shape_facts(samples::record("missing_key").findings[0].minimal);
  const auto cache = std::find_if(windowed.begin(), windowed.end(),
                                  [](const auto& fact) { return fact.first == "cache"; });
  EXPECT_EQ(cache->second, "block, capacity 6, window 4");
}

}  // namespace
}  // namespace kvcheck::reports
