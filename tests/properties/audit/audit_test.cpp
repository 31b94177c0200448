// Facts about the audit: what kills counts, survivors are said, controls are counted.
#include "properties/audit/audit.h"

#include <algorithm>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "model/wrong_models.h"
#include "properties/audit/audit_text.h"
#include "properties/audit/modelled_target.h"

namespace kvcheck::properties {
namespace {

AuditOptions short_walk() {
  AuditOptions options;
  options.seconds = 60;
  options.scenarios = 60;
  options.further = 0;
  options.workers = 2;
  return options;
}

Subject wrong(const char* name, std::string kind) {
  const auto* reading = model::find_wrong_model(name);
  return {std::string("model+") + name, "wrong-model", std::move(kind), "reads wrongly",
          [reading] { return make_modelled_target(reading); }};
}

Subject healthy() {
  return {"model", "wrong-model", "", "", [] { return make_modelled_target(nullptr); }};
}

TEST(Audit, AFaultIsKilledByAPropertyThatNamesItsKind) {
  const SubjectResult result = audit_subject(wrong("causal.skipped", "mask origin"), short_walk());
  EXPECT_TRUE(result.killed);
  EXPECT_EQ(result.by, "mask.visible_set");
  EXPECT_EQ(result.finding, "leak");
  // The lattice begins with single tokens, which see all that there is.
  EXPECT_EQ(result.scenarios, 2);
  EXPECT_TRUE(result.first.empty());
  EXPECT_TRUE(result.seen_by.count("mask.visible_set"));
}

TEST(Audit, AFindingOfAnotherKindDoesNotKill) {
  // Leaking keys are no difference between two runs of a case.
  const SubjectResult result =
      audit_subject(wrong("causal.skipped", "nondeterminism"), short_walk());
  EXPECT_FALSE(result.killed);
  EXPECT_EQ(result.scenarios, 60);
  EXPECT_EQ(result.first, "mask.visible_set leak");
  EXPECT_TRUE(result.by.empty());
}

TEST(Audit, ATargetWithoutAFaultSurvives) {
  Subject none = healthy();
  none.kind = "mask origin";
  const SubjectResult result = audit_subject(none, short_walk());
  EXPECT_FALSE(result.killed);
  EXPECT_TRUE(result.seen_by.empty());
}

TEST(Audit, AControlCountsEveryFailureAsAFalseAlarm) {
  EXPECT_EQ(audit_control(healthy(), 40, short_walk()).false_alarms, 0);
  EXPECT_EQ(audit_control(healthy(), 40, short_walk()).scenarios, 40);
  const ControlResult bad = audit_control(wrong("output.zero", ""), 40, short_walk());
  EXPECT_GE(bad.false_alarms, 40);
  EXPECT_FALSE(bad.sentence.empty());
}

TEST(Audit, OneOrTwoWorkersFindTheSame) {
  const std::vector<Subject> subjects = {
      wrong("causal.skipped", "mask origin"), wrong("window.one_more", "window edge"),
      wrong("heads.modulo", "head map"), wrong("rows.not_moved", "layout")};
  std::vector<std::string> found[2];
  for (const int workers : {1, 2}) {
    AuditOptions options = short_walk();
    options.workers = workers;
    for (const SubjectResult& fault : run_audit(subjects, {}, options, {}).faults) {
      found[workers - 1].push_back(fault.name + " " + fault.by + " " +
                                   std::to_string(fault.scenarios) + " " + fault.sentence);
    }
  }
  EXPECT_EQ(found[0], found[1]);
}

TEST(Audit, TotalsTextAndJsonSayWhatSurvived) {
  const AuditOptions options = short_walk();
  const AuditResult result = run_audit(
      {wrong("causal.skipped", "mask origin"), wrong("causal.without_self", "nondeterminism")},
      {healthy()}, options, {});
  EXPECT_EQ(result.killed(), 1);
  EXPECT_EQ(result.false_alarms(), 0);
  EXPECT_FALSE(result.held());
  EXPECT_GE(result.controls.front().scenarios, 60);
  EXPECT_EQ(result.matrix().at("mask.visible_set").at("mask origin"), 1);
  const auto weak = weak_properties(result);
  EXPECT_NE(std::find(weak.begin(), weak.end(), "target.repeat"), weak.end());
  EXPECT_EQ(std::find(weak.begin(), weak.end(), "mask.visible_set"), weak.end());

  const std::string text = audit_text(result);
  EXPECT_EQ(text.find("survivor  model+causal.without_self"), 0u) << text;
  EXPECT_NE(text.find("1 of 2 faults killed"), std::string::npos);
  const auto json = nlohmann::json::parse(audit_json(result));
  EXPECT_EQ(json["totals"]["faults"], 2);
  EXPECT_EQ(json["totals"]["killed"], 1);
  EXPECT_EQ(json["false_alarms"], 0);
  EXPECT_EQ(json["context"], 0);
  EXPECT_EQ(json["row"], false);
  EXPECT_EQ(json["random"], false);
  const auto& first = json["faults"][0];
  EXPECT_EQ(first["name"], "model+causal.skipped");
  EXPECT_EQ(first["place"], "wrong-model");
  EXPECT_EQ(first["kind"], "mask origin");
  EXPECT_EQ(first["killed"], true);
  EXPECT_EQ(first["by"], "mask.visible_set");
  EXPECT_EQ(first["scenarios"], 2);
  EXPECT_EQ(json["faults"][1]["not_by_kind"], "mask.visible_set missing_key");
}

}  // namespace
}  // namespace kvcheck::properties
