// Coverage classes: the situations that a run must have reached before its green means something.
#pragma once

#include <string>
#include <vector>

#include "kernels/target.h"
#include "model/scenario.h"
#include "model/timeline.h"

namespace kvcheck::properties {

struct CoverageClass {
  std::string name;
  bool (*reached)(const model::Scenario&, const model::Timeline&);
  /// Whether a target can be driven there at all; a class that it cannot reach is not listed.
  bool (*reachable)(const kernels::Capabilities&);
};

const std::vector<CoverageClass>& coverage_classes();

}  // namespace kvcheck::properties
