// Investigation of a failure.
#include "properties/finding.h"

#include <exception>

#include <fmt/format.h>

#include "model/scenario_json.h"
#include "properties/convert.h"
#include "properties/diagnosis.h"
#include "properties/evidence.h"
#include "properties/last_store.h"
#include "shrinkers/explain.h"

namespace kvcheck::properties {
namespace {

/// Further runs of a scenario that did not fail in every run of the gate, for its rate.
constexpr int kRateRuns = 7;

/// Runs of each candidate while an intermittent failure is shrunk.
constexpr int kIntermittentTries = 5;

bool fails_once(kernels::Target& target, const Property& property, const FailsAs& way,
                const model::Scenario& scenario, const FindingOptions& options) {
  try {
    Case c(target, scenario);
    const Judgement judgement = judge(c, property);
    if (judgement.verdict != Verdict::failed || judgement.kind != way.kind) return false;
    if (judgement.rule != way.rule) return false;
    return !options.explains || options.explains(c, property, judgement) == options.known;
  } catch (const std::exception&) {
    return false;
  }
}

/// Whether runs of the same scenario in fresh sessions give outputs of other bits.
bool outputs_differ(kernels::Target& target, const model::Scenario& scenario,
                    const FindingOptions& options) {
  if (options.gate_runs == 0 || !target.capabilities().outputs) return false;
  std::vector<std::vector<std::byte>> first;
  for (int run = 0; run < options.gate_runs; ++run) {
    if (options.before_run) options.before_run(scenario);
    Case c(target, scenario);
    std::vector<std::vector<std::byte>> outputs;
    for (const StepAnswer& answer : c.execution().steps) {
      const bool given = answer.status == StepAnswer::Status::ok && answer.result.output;
      outputs.push_back(given ? answer.result.output->bytes : std::vector<std::byte>{});
    }
    if (run > 0 && outputs != first) return true;
    first = std::move(outputs);
  }
  return false;
}

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

shrinkers::CorpusEntry corpus_entry(const FindingRecord& finding) {
  shrinkers::CorpusEntry entry;
  entry.scenario = finding.minimal;
  entry.property = finding.property;
  entry.target = finding.target;
  entry.kind = to_string(finding.kind);
  entry.rule = finding.rule;
  entry.summary = finding.summary;
  return entry;
}

std::string signature(const std::string& property, const std::string& target, Kind kind,
                      const std::string& rule) {
  return fmt::format("{}|{}|{}|{}", property, target, to_string(kind), rule);
}

shrinkers::StillFails still_fails_with(kernels::Target& target, const Property& property,
                                       const FailsAs& way, int tries,
                                       const FindingOptions& options) {
  return [&target, &property, way, tries, options](const model::Scenario& scenario) {
    if (!unsupported_reason(target.capabilities(), scenario).empty()) return false;
    if (!property.inapplicable(scenario, target.capabilities()).empty()) return false;
    for (int i = 0; i < tries; ++i) {
      if (options.interrupted && *options.interrupted) return false;
      if (options.before_run) options.before_run(scenario);
      if (fails_once(target, property, way, scenario, options)) return true;
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
  finding.rule = judgement.rule;
  finding.first = finding.worst = scenario;
  finding.worst_ratio = judgement.max_ratio;

  const FailsAs way{judgement.kind, judgement.rule};
  const auto once = still_fails_with(target, property, way, 1, options);
  int again = 0, runs = options.gate_runs;
  for (int i = 0; i < options.gate_runs; ++i) again += once(scenario) ? 1 : 0;
  finding.deterministic = again == options.gate_runs;
  if (!finding.deterministic) {
    for (; runs < options.gate_runs + kRateRuns; ++runs) again += once(scenario) ? 1 : 0;
  }
  finding.failure_rate = runs > 0 ? static_cast<double>(again) / runs : 1;
  finding.bits_differ = outputs_differ(target, scenario, options);
  const auto still_fails =
      finding.deterministic ? once
                            : still_fails_with(target, property, way, kIntermittentTries, options);
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
  if (last.verdict != Verdict::failed) {
    last = judgement;
  } else {
    last.text = with_last_store(target, finding.minimal, last);
  }
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
    finding.evidence.notes.push_back(
        fmt::format("Not deterministic: failed in {} of {} further runs.", again, runs));
  }
  if (finding.bits_differ) {
    finding.evidence.notes.push_back("The outputs of further runs differ in their bits.");
  }
  return finding;
}

}  // namespace kvcheck::properties
