// Entries of the ledger: what is refused, for which releases they hold, and that nothing but the
// measured explanation makes a failure a known one.
#include "properties/known_findings.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "kernels/cpu/naive/cpu_naive.h"
#include "model/scenario_json.h"

namespace kvcheck::properties {
namespace {

nlohmann::json entry_json() {
  return nlohmann::json::parse(R"({
    "schema": 1, "title": "t", "target": "cpu-naive+causal_skipped_single_query",
    "releases": {}, "failures": {"mask.visible_set": ["leak", "missing_key"],
                                 "values.within_bound": ["over_bound"]},
    "condition": {"operator": "attention", "causal": true, "nonpad_kv_seqlen": false,
                  "queries": 1, "least_tokens": 2, "least_past": 1},
    "reading": "causal.skipped_for_one_query", "issue": "https://example.org/1"})");
}

std::string refusal(const nlohmann::json& json) {
  try {
    known_finding_from(json.dump(), "x.json");
  } catch (const model::ScenarioError& error) {
    return error.what();
  }
  return "";
}

TEST(KnownFindings, TheLedgerThatShipsReads) {
  const auto entries = load_known(KVCHECK_KNOWN_FOLDER);
  ASSERT_FALSE(entries.empty());
  EXPECT_EQ(entries.front().target, "onnxruntime");
}

TEST(KnownFindings, AnEntryWithNeitherIssueNorCaseIsRefused) {
  auto json = entry_json();
  EXPECT_EQ(refusal(json), "");
  json.erase("issue");
  EXPECT_NE(refusal(json).find("public issue"), std::string::npos) << refusal(json);
  json["sentence"] = "Query i attends key j iff j <= i + past.";
  EXPECT_NE(refusal(json).find("public issue"), std::string::npos);
  json["scenario"] = {{"schema", 1}, {"operator", "gqa"}, {"steps", {{{"append", 1}}}}};
  EXPECT_EQ(refusal(json), "");
}

TEST(KnownFindings, WhatIsWrongIsNamedWithItsFile) {
  for (const auto& [field, value, word] :
       std::vector<std::tuple<std::string, nlohmann::json, std::string>>{
           {"reading", "causal.nothing", "causal.nothing"},
           {"reading", "", "give one of"},
           {"values", "lowest_for_hidden", "give one of"},
           {"rules", {"output_mode"}, "give one of"},
           {"issue", "ftp://x", "https"},
           {"failures", {{"mask.nothing", {"leak"}}}, "mask.nothing"},
           {"failures", {{"mask.visible_set", {"drip"}}}, "drip"},
           {"releases", 7, "releases"},
           {"target", "", "target"},
           {"widow", 1, "widow"}}) {
    auto json = entry_json();
    json[field] = value;
    const auto message = refusal(json);
    EXPECT_NE(message.find(word), std::string::npos) << message;
    EXPECT_NE(message.find("x.json"), std::string::npos) << message;
  }
  EXPECT_THROW(known_finding_from("{", "x.json"), model::ScenarioError);
}

TEST(KnownFindings, AValueRuleIsOneOfThoseThatThereAre) {
  auto json = entry_json();
  json.erase("reading");
  json["values"] = "lowest_for_hidden";
  EXPECT_EQ(refusal(json), "");
  json["values"] = "odd";
  EXPECT_NE(refusal(json).find("lowest_row_is_empty"), std::string::npos) << refusal(json);
}

TEST(KnownFindings, HoldForTheirReleases) {
  auto known = known_finding_from(entry_json().dump(), "x.json");
  known.target = "onnxruntime";
  known.first_release = "1.23.0";
  known.last_release = "1.32.0";
  kernels::Capabilities target;
  target.name = "onnxruntime@1.31.1";
  for (const auto& [version, holds] : std::vector<std::pair<std::string, bool>>{
           {"1.31.1", true}, {"1.32.0", true}, {"1.32.1", false}, {"1.9.0", false}}) {
    target.version = version;
    EXPECT_EQ(holds_for(known, target), holds) << version;
  }
  target.name = "onnx";
  EXPECT_FALSE(holds_for(known, target));
  EXPECT_EQ(compare_releases("1.9.2", "1.32.0"), -1);
  EXPECT_EQ(compare_releases("1.32", "1.32.0"), 0);
}

/// Whether the entry explains what `property` finds on the target, which it must fail.
bool explained(const std::string& fault, const char* scenario, const char* property) {
  const auto target = kernels::make_cpu_naive(fault);
  auto known = known_finding_from(entry_json().dump(), "x.json");
  known.target = target->capabilities().name;
  Case c(*target, model::parse_scenario(scenario));
  const Property& p = *find_property(property);
  const Judgement judgement = p.judge(c);
  EXPECT_EQ(judgement.verdict, Verdict::failed) << fault << " " << property;
  return explains(known, c, p, judgement);
}

constexpr const char* kOneQuery = R"({"schema":1,"operator":"attention","opset":23,"head_size":4,
    "steps":[{"past":2},{"append":3,"queries":1}]})";

TEST(KnownFindings, ExplainByWhatWasMeasured) {
  for (const char* property : {"mask.visible_set", "values.within_bound"}) {
    EXPECT_TRUE(explained("causal_skipped_single_query", kOneQuery, property)) << property;
  }
}

TEST(KnownFindings, AnotherFaultOfTheSameSignatureIsNotExplained) {
  // The same query fails, and sees less than it should where the entry tells of more.
  for (const char* property : {"mask.visible_set", "values.within_bound"}) {
    EXPECT_FALSE(explained("causal_top_left_with_past", kOneQuery, property)) << property;
  }
}

TEST(KnownFindings, AQueryOutsideTheConditionIsNotExplained) {
  auto json = entry_json();
  json["condition"]["least_tokens"] = 4;
  const auto target = kernels::make_cpu_naive("causal_skipped_single_query");
  const auto known = known_finding_from(json.dump(), "x.json");
  Case c(*target, model::parse_scenario(kOneQuery));
  for (const char* id : {"mask.visible_set", "values.within_bound"}) {
    const Property& property = *find_property(id);
    EXPECT_FALSE(explains(known, c, property, property.judge(c))) << id;
  }
}

}  // namespace
}  // namespace kvcheck::properties
