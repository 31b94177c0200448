// What a run is to do, from its options or from the record of a run that goes on.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/registry.h"
#include "properties/commands/run_command.h"
#include "properties/known_findings.h"
#include "properties/run_folder.h"
#include "properties/search.h"

namespace kvcheck::properties {

/// Bad usage: one message, exit code 254.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct RunPlan {
  RunRecord record;      ///< New, or as the run that goes on left it.
  std::string name;      ///< Of the run folder.
  SearchOptions search;  ///< Of every target; deadline and make_target are set for each.
  kernels::RegistryOptions registry;
  std::vector<std::string> targets;  ///< Names to make; empty = every available one.
  std::vector<KnownFinding> known;
  double seconds = 0;  ///< For the whole of what is left; 0 = by the number of targets.
};

/// \throws UsageError, model::ScenarioError
RunPlan plan_run(const RunOptions& options, const Store& store,
                 const std::atomic<bool>* interrupted);

}  // namespace kvcheck::properties
