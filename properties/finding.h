// From a failed judgement to a finding: determinism gate, shrinking, explanation, evidence.
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "kernels/target.h"
#include "properties/case_judge.h"
#include "properties/catalog.h"
#include "properties/run_record.h"
#include "shrinkers/corpus.h"
#include "shrinkers/shrink.h"

namespace kvcheck::properties {

struct FindingOptions {
  shrinkers::Budget shrink;
  bool explain = true;
  int gate_runs = 3;  ///< Further runs of the failing scenario before it is shrunk.
  const std::atomic<bool>* interrupted = nullptr;  ///< Ends the investigation: best so far.
  std::function<void(const model::Scenario&)> before_run{};  ///< Before every further run.
  /// What explains failures, and what explained this one: only such count as the same.
  Explains explains{};
  std::string known{};
};

/// Everything about one signature that can be learned by running the target again. Fields that
/// belong to the run (file, case_index, seconds, occurrences) stay at their defaults.
FindingRecord investigate(kernels::Target& target, const Property& property,
                          const Judgement& judgement, const model::Scenario& scenario,
                          const FindingOptions& options);

/// The signature within a run: property, target, kind, and the rule that was broken where findings
/// differ by it (Judgement::rule).
std::string signature(const std::string& property, const std::string& target, Kind kind,
                      const std::string& rule = {});

/// How a property fails: what shrinking keeps.
struct FailsAs {
  Kind kind = Kind::over_bound;
  std::string rule{};
};

/// The predicate of shrinking: the scenario is one that the target claims, and `property` fails
/// on it in that way.
shrinkers::StillFails still_fails_with(kernels::Target& target, const Property& property,
                                       const FailsAs& way, int tries,
                                       const FindingOptions& options = {});

/// The minimal scenario of a finding as the corpus keeps it; seed and case index are left out.
shrinkers::CorpusEntry corpus_entry(const FindingRecord& finding);

}  // namespace kvcheck::properties
