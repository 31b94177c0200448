// The sentence about a run.
#include "reports/run_summary.h"

#include <gtest/gtest.h>

#include "tests/reports/sample_records.h"

namespace kvcheck::reports {
namespace {

using properties::Verdict;

TEST(RunSummary, SaysWhatHeldAndWhatWasSkipped) {
  const auto run = summarise(samples::record("passed"));
  EXPECT_EQ(run.verdict, Verdict::passed) << "a skipped check does not turn a pass into a skip";
  EXPECT_EQ(run.sentence, "3 checks held; 1 was skipped, with the reason beside each.");
  EXPECT_EQ(run.count(Verdict::skipped), 1);
}

TEST(RunSummary, SaysNothingWasJudged) {
  auto record = samples::record("passed");
  for (auto& property : record.properties) property.status = Verdict::skipped;
  EXPECT_EQ(summarise(record).verdict, Verdict::skipped);
  EXPECT_EQ(summarise(record).sentence, "Nothing was judged.");
  EXPECT_EQ(summarise({}).sentence, "Nothing was judged.");
}

TEST(RunSummary, NamesTheTargetThatFailed) {
  EXPECT_EQ(summarise(samples::record("leak")).sentence,
            "1 of 4 checks broke the contract, on onnxruntime-cpu.");
}

TEST(RunSummary, TellsBlindFromPassed) {
  const auto run = summarise(samples::record("blind"));
  EXPECT_EQ(run.verdict, Verdict::blind);
  EXPECT_NE(run.sentence.find("1 of 4 checks could not have failed"), std::string::npos);
}

TEST(RunSummary, TellsErrorsBesideFailures) {
  const auto run = summarise(samples::record("errored"));
  EXPECT_EQ(run.verdict, Verdict::errored);
  EXPECT_NE(run.sentence.find("broke the contract"), std::string::npos);
  EXPECT_NE(run.sentence.find("kvcheck itself failed"), std::string::npos);
  EXPECT_EQ(run.remarks[0], "The run was interrupted; this is what it had found until then.");
}

TEST(RunSummary, DoesNotPassWithAFindingThatHasNoRow) {
  auto record = samples::record("leak");
  record.properties[0].status = Verdict::passed;
  record.properties.erase(record.properties.begin());
  EXPECT_EQ(summarise(record).verdict, Verdict::failed);
}

TEST(FindingFacts, TellWhetherACaseIsMinimalAndCertain) {
  const auto certain = finding_facts(samples::record("leak").findings[0]);
  EXPECT_NE(certain.find("no smaller case fails in this way. Fails every time."),
            std::string::npos);
  const auto doubtful = finding_facts(samples::record("rows_after_rollback").findings[0]);
  EXPECT_NE(doubtful.find("a smaller case may exist. Does not fail every time."),
            std::string::npos);
}

}  // namespace
}  // namespace kvcheck::reports
