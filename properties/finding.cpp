// Investigation of a failure.
#include "properties/finding.h"

#include <fmt/format.h>

#include "model/scenario_json.h"
#include "properties/convert.h"
#include "properties/diagnosis.h"
#include "properties/evidence.h"
#include "properties/search.h"
#include "shrinkers/explain.h"

namespace kvcheck::properties {
namespace {

std::vector<std::string> explanation_text(const shrinkers::Explanation& explanation) {
  std::vector<std::string> lines;
  for (const auto& field : explanation.fields) {
    lines.push_back(fmt::format("{} = {}: {} (tried {})", field.field, field.value,
                                field.matters ? "matters" : "any value tried fails as well",
                                field.tried));
  }
  return lines;
}

}  // namespace

std::string signature(const std::string& property, const std::string& target, Kind kind) {
  return fmt::format("{}|{}|{}", property, target, to_string(kind));
}

shrinkers::StillFails still_fails_with(kernels::Target& target, const Property& property, Kind kind,
                                       int tries) {
  return [&target, &property, kind, tries](const model::Scenario& scenario) {
    if (!unsupported_reason(target.capabilities(), scenario).empty()) return false;
    if (!property.inapplicable(scenario, target.capabilities()).empty()) return false;
    for (int i = 0; i < tries; ++i) {
      const Judgement judgement = judge_fresh(target, scenario, property);
      if (judgement.verdict == Verdict::failed && judgement.kind == kind) return true;
    }
    return false;
  };
}

FindingRecord investigate(kernels::Target& target, const Property& property,
                          const Judgement& judgement, const model::Scenario& scenario,
                          const FindingOptions& options) {
  FindingRecord finding;
  finding.property = property.id;
  finding.target = target.capabilities().name;
  finding.target_version = target.capabilities().version;
  finding.kind = judgement.kind;
  finding.first = finding.worst = scenario;
  finding.worst_ratio = judgement.max_ratio;

  const auto once = still_fails_with(target, property, judgement.kind, 1);
  int again = 0;
  for (int i = 0; i < options.gate_runs; ++i) again += once(scenario) ? 1 : 0;
  finding.deterministic = again == options.gate_runs;
  const auto still_fails =
      finding.deterministic ? once : still_fails_with(target, property, judgement.kind, 5);
  finding.minimal = scenario;
  if (again > 0) {
    const auto shrunk = shrinkers::shrink(scenario, still_fails, judgement.hint, options.shrink);
    finding.minimal = shrunk.minimal;
    finding.evaluations = shrunk.evaluations;
    finding.is_minimal = shrunk.stop == shrinkers::Stop::fixed_point && shrunk.verified;
    for (const auto& step : shrunk.trail) {
      finding.trail.push_back({step.pass, step.change, step.evaluation});
    }
  } else {
    finding.is_minimal = false;
  }
  if (options.explain && again > 0) {
    const auto explanation = shrinkers::explain(finding.minimal, still_fails, 120);
    finding.explain = explanation_text(explanation);
    finding.nearest_passing = explanation.nearest_change;
  }
  Judgement last = judge_fresh(target, finding.minimal, property);
  if (last.verdict != Verdict::failed) last = judgement;
  finding.summary = last.text;
  finding.hash = model::content_hash(finding.minimal);
  finding.evidence = collect_evidence(target, finding.minimal, last);
  // The first scenario tells more readings apart; the minimal one is the one that is shown.
  for (auto& sentence : diagnosis_words(target, scenario)) {
    finding.evidence.words.push_back(std::move(sentence));
  }
  if (finding.minimal != scenario) {
    for (auto& sentence : diagnosis_words(target, finding.minimal, "as shrunk")) {
      finding.evidence.words.push_back(std::move(sentence));
    }
  }
  if (!finding.deterministic) {
    finding.evidence.notes.push_back(fmt::format(
        "Not deterministic: failed in {} of {} further runs.", again, options.gate_runs));
  }
  return finding;
}

}  // namespace kvcheck::properties
