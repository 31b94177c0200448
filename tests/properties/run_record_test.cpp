// The run record: names, merged verdict, and its JSON form.
#include "properties/run_record.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "model/scenario_json.h"

namespace kvcheck::properties {
namespace {

using Json = nlohmann::ordered_json;

model::Scenario scenario_of(std::int64_t tokens) {
  model::Scenario scenario;
  scenario.element_type = model::ElementType::bf16;
  scenario.cache = {model::LayoutKind::block, 6, 4};
  scenario.fill = {model::FillKind::position_code, 9007199254740993u, 1};
  scenario.steps = {model::Append{{tokens}, {tokens}, 0}, model::Rollback{{1}},
                    model::Append{{1}, {1}, 0}};
  return scenario;
}

Evidence evidence_of() {
  StepEvidence step;
  step.what = "append 3";
  step.entries = {{1, 2, 3, 4, 5, true}};
  step.answer = "refused: too long";
  step.visibility = {{1, 2, 3, {4, 5}, {4, 6}, {0.25, 0.75}, true}};
  step.rows = {{1, 2, -2, -1, 7}};
  step.elements = {
      {1, 2, 3, 4, 5, 0.1, 1.0 / 3, 5e-324, 1.7976931348623157e308, 1e-7, 2e-7, 3e-7, 4e-7, 5e-7}};
  step.elements_compared = 1234567890123;
  step.max_ratio = std::numeric_limits<double>::infinity();
  return {{step}, 2, {"first", "then"}, {"left out"}};
}

/// Every field differs from its default.
RunRecord full_record() {
  RunRecord run;
  run.tool = "kvcheck 0.1.0", run.compiler = "GCC", run.flags = "-O2";
  run.seed = 18446744073709551615u, run.workers = 7, run.started = "2026-11-14T09:30:00Z";
  run.machine = "m", run.arguments = "run", run.stop = "time";
  run.scenarios = 11, run.verdicts = 12, run.seconds = 0.1;
  run.targets = {{"t", "1", true, "r", "a"}};
  run.properties = {{"p", "s", "t", Verdict::blind, 1, 2, 3, 4, 5, "why", 0.7, 6}};
  run.coverage = {{"c", "t", 1, 2, 3, 4, 0.25, "open"}};
  run.phases = {{"random", "t", 1, 2, 0.5, 0.25, 18446744073709551615u, "time"}};
  run.candidates = {{"t", "random", 9, 0.75, true, scenario_of(5)}};
  run.known = {{"k.json", "t", "title", "https://example.org", 3, true, true}};
  run.settings.targets = {"t"}, run.settings.properties = {"p"}, run.settings.focus = {"nonpad"};
  run.settings.phases = {"random"}, run.settings.cases = 3, run.settings.seconds = 1.5;
  run.settings.case_seconds = 2, run.settings.shrink_seconds = 3, run.settings.context = 32;
  run.settings.shrink_evaluations = 4, run.settings.observations = true;
  run.settings.named = {scenario_of(6)}, run.settings.corpus = {"hash"};
  run.errors = {{"t", "f16", 3, {1, 2}, 0.3, "hash"}};
  FindingRecord finding;
  finding.property = "p", finding.target = "t", finding.target_version = "1";
  finding.kind = Kind::rollback_difference, finding.summary = "s", finding.hash = "h";
  finding.file = "failing/h.json", finding.case_index = 18446744073709551614u;
  finding.minimal = scenario_of(2), finding.first = scenario_of(3), finding.worst = scenario_of(4);
  finding.worst_ratio = 2.5, finding.evaluations = 57, finding.seconds = 1e-3;
  finding.is_minimal = false, finding.deterministic = false, finding.occurrences = 9;
  finding.failure_rate = 0.5, finding.bits_differ = true, finding.investigated = false;
  finding.phase = "lattice", finding.known = "k.json";
  finding.trail = {{"pass", "change", 3}};
  finding.explain = {"x: y"}, finding.nearest_passing = "n", finding.evidence = evidence_of();
  run.findings = {finding};
  run.notes = {"note"};
  return run;
}

RunRecord through_text(const RunRecord& record) {
  return run_record_from_json(Json::parse(to_json(record).dump(2)));
}

std::string error_of(const Json& json) {
  try {
    run_record_from_json(json);
  } catch (const model::ScenarioError& error) {
    return error.what();
  }
  return "";
}

TEST(Verdict, ReadsBackEveryName) {
  for (const auto verdict :
       {Verdict::passed, Verdict::skipped, Verdict::blind, Verdict::failed, Verdict::errored}) {
    EXPECT_EQ(verdict_from(to_string(verdict)), verdict);
  }
  EXPECT_EQ(verdict_from("green"), std::nullopt);
}

TEST(Kind, ReadsBackEveryName) {
  for (int i = 0; i <= static_cast<int>(Kind::nondeterministic); ++i) {
    const auto kind = static_cast<Kind>(i);
    EXPECT_EQ(kind_from(to_string(kind)), kind) << to_string(kind);
  }
  EXPECT_EQ(to_string(Kind::missing_key), "missing_key");
  EXPECT_EQ(to_string(Kind::nondeterministic), "nondeterministic");
  EXPECT_EQ(kind_from(""), std::nullopt);
}

TEST(RunRecord, MergesVerdictsByWeight) {
  RunRecord run;
  EXPECT_EQ(run.verdict(), Verdict::skipped) << "nothing judged is no pass";
  run.properties.resize(2);
  run.properties[0].status = run.properties[1].status = Verdict::passed;
  EXPECT_EQ(run.verdict(), Verdict::passed);
  for (const auto heavier : {Verdict::skipped, Verdict::blind, Verdict::failed, Verdict::errored}) {
    run.properties[1].status = heavier;
    EXPECT_EQ(run.verdict(), heavier);
  }
}

TEST(ErrorBinEdges, DoubleFromTwoToMinusTenUpToEightAndBeyond) {
  const auto& edges = error_bin_edges();
  ASSERT_EQ(edges.size(), 16u);
  EXPECT_EQ(edges[0], 0);
  EXPECT_EQ(edges[1], 0x1p-10);
  for (std::size_t i = 2; i < 15; ++i) EXPECT_EQ(edges[i], 2 * edges[i - 1]);
  EXPECT_EQ(edges[11], 1);
  EXPECT_EQ(edges[14], 8);
  EXPECT_TRUE(std::isinf(edges[15]));
}

TEST(ErrorBin, IsTheFirstWhoseEdgeIsNoLess) {
  const auto& edges = error_bin_edges();
  const auto first = [&](double ratio) {
    return static_cast<std::size_t>(std::ranges::lower_bound(edges, ratio) - edges.begin());
  };
  std::vector<double> ratios{0, 0x1p-1074, 1e-300, 0.3, 0.999, 5, 1e300, edges.back()};
  for (const double edge : edges) {
    ratios.push_back(std::nextafter(edge, 0));
    ratios.push_back(edge);
    ratios.push_back(std::nextafter(edge, edges.back()));
  }
  for (const double ratio : ratios) EXPECT_EQ(error_bin(ratio), first(ratio)) << ratio;
}

TEST(RunRecordJson, KeepsEveryFieldThroughText) {
  const RunRecord before = full_record();
  const RunRecord after = through_text(before);
  EXPECT_EQ(to_json(after), to_json(before));
  // The comparison above would not see a field that neither side knows.
  EXPECT_EQ(after.seed, before.seed);
  EXPECT_EQ(after.properties[0].status, Verdict::blind);
  EXPECT_EQ(after.properties[0].max_bound_ratio, 0.7);
  EXPECT_EQ(after.targets[0].arithmetic, "a");
  EXPECT_EQ(after.coverage[0].cases, 2);
  EXPECT_EQ(after.errors[0].worst_hash, "hash");
  const FindingRecord& finding = after.findings[0];
  EXPECT_EQ(finding.case_index, 18446744073709551614u);
  EXPECT_EQ(finding.minimal, before.findings[0].minimal);
  EXPECT_EQ(finding.first, before.findings[0].first);
  EXPECT_EQ(finding.worst, before.findings[0].worst);
  EXPECT_EQ(finding.kind, Kind::rollback_difference);
  EXPECT_EQ(finding.trail[0].evaluation, 3);
  EXPECT_FALSE(finding.is_minimal);
  EXPECT_FALSE(finding.deterministic);
  const StepEvidence& step = finding.evidence.steps[0];
  EXPECT_EQ(step.visibility[0].weights, (std::vector<double>{0.25, 0.75}));
  EXPECT_EQ(step.rows[0].observed_generation, 7);
  EXPECT_EQ(step.elements[0].term_store, 4e-7);
  EXPECT_EQ(step.elements[0].term_operands, 5e-7);
  EXPECT_TRUE(step.entries[0].staged);
  EXPECT_EQ(finding.evidence.failing_step, 2);
}

TEST(RunRecordJson, WritesEveryFieldOfEveryStruct) {
  // One number per struct: its fields in the header. `totals` stands for three of the run's.
  const Json run = to_json(full_record());
  EXPECT_EQ(run.size(), 21u);
  EXPECT_EQ(run["targets"][0].size(), 5u);
  EXPECT_EQ(run["properties"][0].size(), 12u);
  EXPECT_EQ(run["coverage"][0].size(), 8u);
  EXPECT_EQ(run["errors"][0].size(), 6u);
  const Json& finding = run["findings"][0];
  EXPECT_EQ(finding.size(), 27u);
  EXPECT_EQ(finding["trail"][0].size(), 3u);
  EXPECT_EQ(finding["evidence"].size(), 4u);
  const Json& step = finding["evidence"]["steps"][0];
  EXPECT_EQ(step.size(), 8u);
  EXPECT_EQ(step["entries"][0].size(), 6u);
  EXPECT_EQ(step["visibility"][0].size(), 7u);
  EXPECT_EQ(step["rows"][0].size(), 5u);
  EXPECT_EQ(step["elements"][0].size(), 14u);
}

TEST(RunRecordJson, KeepsDoublesToTheBit) {
  RunRecord run = full_record();
  auto& element = run.findings[0].evidence.steps[0].elements[0];
  for (const double value : {1.0 / 3, 5e-324, -0.0, 1.7976931348623157e308, 0.1 + 0.2}) {
    element.observed = value;
    const double back = through_text(run).findings[0].evidence.steps[0].elements[0].observed;
    EXPECT_EQ(back, value);
    EXPECT_EQ(std::signbit(back), std::signbit(value));
  }
}

TEST(RunRecordJson, WritesWhatIsNotFiniteAsWords) {
  RunRecord run = full_record();
  auto& element = run.findings[0].evidence.steps[0].elements[0];
  element.observed = std::numeric_limits<double>::quiet_NaN();
  element.expected = -std::numeric_limits<double>::infinity();
  const std::string text = to_json(run).dump();
  EXPECT_NE(text.find("\"observed\":\"nan\""), std::string::npos);
  EXPECT_NE(text.find("\"expected\":\"-inf\""), std::string::npos);
  EXPECT_NE(text.find("\"max_ratio\":\"inf\""), std::string::npos);
  const auto back = through_text(run).findings[0].evidence.steps[0];
  EXPECT_TRUE(std::isnan(back.elements[0].observed));
  EXPECT_EQ(back.elements[0].expected, -std::numeric_limits<double>::infinity());
  EXPECT_EQ(back.max_ratio, std::numeric_limits<double>::infinity());
}

TEST(RunRecordJson, HasTheFieldsThatScriptsRelyOn) {
  const Json json = to_json(full_record());
  for (const char* name :
       {"schema", "tool", "seed", "workers", "totals", "properties", "findings"}) {
    EXPECT_TRUE(json.contains(name)) << name;
  }
  for (const char* name : {"scenarios", "verdicts", "seconds"}) {
    EXPECT_TRUE(json["totals"].contains(name)) << name;
  }
  for (const char* name : {"property", "target", "status", "scenarios"}) {
    EXPECT_TRUE(json["properties"][0].contains(name)) << name;
  }
  for (const char* name : {"property", "target", "kind", "summary", "hash", "file", "minimal",
                           "evaluations", "seconds"}) {
    EXPECT_TRUE(json["findings"][0].contains(name)) << name;
  }
  EXPECT_EQ(json["schema"], kRunSchema);
  EXPECT_EQ(json["seed"].get<std::uint64_t>(), 18446744073709551615u);
  EXPECT_EQ(json["findings"][0]["minimal"], model::to_json(scenario_of(2)));
}

TEST(RunRecordJson, IgnoresUnknownFieldsAndDefaultsMissingOnes) {
  const RunRecord run = run_record_from_json(
      Json::parse(R"({"later": [1], "properties": [{"property": "p", "colour": "red"}]})"));
  EXPECT_EQ(run.properties[0].property, "p");
  EXPECT_EQ(run.properties[0].status, Verdict::skipped);
  EXPECT_EQ(run.workers, 1);
  EXPECT_TRUE(run.findings.empty());
}

TEST(RunRecordJson, NamesTheFieldOfAWrongType) {
  const auto starts = [](const std::string& text, const std::string& start) {
    return text.rfind(start, 0) == 0;
  };
  const auto error = [](const char* text) { return error_of(Json::parse(text)); };
  EXPECT_PRED2(starts, error(R"([1])"), "run record = [1]: must be an object");
  EXPECT_PRED2(starts, error(R"({"tool": 3})"), "tool = 3: must be a string");
  EXPECT_PRED2(starts, error(R"({"seed": -1})"), "seed = -1: must be a whole number");
  EXPECT_PRED2(starts, error(R"({"workers": 1.5})"), "workers = 1.5: must be a whole number");
  EXPECT_PRED2(starts, error(R"({"workers": 9223372036854775808})"), "workers = 92");
  EXPECT_PRED2(starts, error(R"({"totals": {"seconds": "x"}})"), "totals.seconds = \"x\"");
  EXPECT_PRED2(starts, error(R"({"totals": 3})"), "totals = 3: must be an object");
  EXPECT_PRED2(starts, error(R"({"properties": {}})"), "properties = {}: must be a list");
  EXPECT_PRED2(starts, error(R"({"properties": [{}, {"status": "green"}]})"),
               "properties[1].status = \"green\": must be passed");
  EXPECT_PRED2(starts, error(R"({"targets": [{"available": 1}]})"),
               "targets[0].available = 1: must be true or false");
  EXPECT_PRED2(starts,
               error(R"({"findings": [{"evidence": {"steps": [{"rows": [{"row": "a"}]}]}}]})"),
               "findings[0].evidence.steps[0].rows[0].row = \"a\"");
  EXPECT_PRED2(starts, error(R"({"findings": [{"kind": "odd"}]})"), "findings[0].kind = \"odd\"");
  EXPECT_PRED2(starts, error(R"({"findings": [{"minimal": {"schema": 1}}]})"),
               "findings[0].minimal: ");
}

TEST(RunRecordJson, RefusesANewerSchemaBeforeAnythingElse) {
  const std::string error = error_of(Json::parse(R"({"tool": {"name": "kvcheck"}, "schema": 2})"));
  EXPECT_EQ(error.rfind("schema = 2: must be 1", 0), 0u) << error;
}

TEST(RunRecordJson, CutsLongValuesInMessages) {
  const std::string error = error_of(Json{{"tool", Json::array({std::string(5000, 'x')})}});
  EXPECT_LT(error.size(), 200u);
  EXPECT_NE(error.find("..."), std::string::npos);
}

TEST(RunRecordJson, CanWriteTheBytesOfACrashedTarget) {
  RunRecord run = full_record();
  run.findings[0].evidence.steps[0].answer = "crash: \xFF\xC3(";
  EXPECT_NO_THROW(to_json(run).dump());
  EXPECT_EQ(through_text(run).findings[0].evidence.steps[0].answer.rfind("crash: ", 0), 0u);
}

}  // namespace
}  // namespace kvcheck::properties
