// From a failed judgement to a finding: determinism gate, shrinking, explanation, evidence.
#pragma once

#include "kernels/target.h"
#include "properties/catalog.h"
#include "properties/run_record.h"
#include "shrinkers/shrink.h"

namespace kvcheck::properties {

struct FindingOptions {
  shrinkers::Budget shrink;
  bool explain = true;
  int gate_runs = 3;  ///< Further runs of the failing scenario before it is shrunk.
};

/// Everything about one signature that can be learned by running the target again. Fields that
/// belong to the run (file, case_index, seconds, occurrences) stay at their defaults.
FindingRecord investigate(kernels::Target& target, const Property& property,
                          const Judgement& judgement, const model::Scenario& scenario,
                          const FindingOptions& options);

/// The signature within a run: property, target and kind.
std::string signature(const std::string& property, const std::string& target, Kind kind);

/// The predicate of shrinking: the scenario is one that the target claims, and `property` fails
/// on it with `kind`.
shrinkers::StillFails still_fails_with(kernels::Target& target, const Property& property, Kind kind,
                                       int tries);

}  // namespace kvcheck::properties
