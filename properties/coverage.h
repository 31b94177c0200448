// Coverage classes: the situations that a run must have reached before its green means something.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/target.h"
#include "model/scenario.h"
#include "model/timeline.h"
#include "properties/run_record.h"

namespace kvcheck::properties {

struct CoverageClass {
  std::string name;
  bool (*reached)(const model::Scenario&, const model::Timeline&);
  /// Whether a target can be driven there at all; a class that it cannot reach is not listed.
  bool (*reachable)(const kernels::Capabilities&);
};

const std::vector<CoverageClass>& coverage_classes();

/// Of each of them whether a target can reach it.
std::vector<bool> reachable_classes(const kernels::Capabilities& target);

/// Least share of the random scenarios that a class must have, by its name; 0 for most features,
/// which need only be reached.
double required_share(const std::string& name);

/// Certainty with which a class is called met or unmet: one wrong call in 10^9.
inline constexpr double kCoverageCertainty = 1e9;

/// A share is enough when it is certainly this part of what is required.
inline constexpr double kCoverageTolerance = 0.9;

/// The interval that the share behind `hits` of `cases` lies in, by Wilson's score with
/// `deviations` standard deviations. \pre 0 <= hits <= cases
struct ShareInterval {
  double low = 0, high = 1;
};
ShareInterval wilson_interval(std::int64_t hits, std::int64_t cases, double deviations);

/// "met": certainly at least the tolerated part of the share; "unmet": certainly less than it;
/// "open": the cases do not tell.
std::string coverage_status(std::int64_t hits, std::int64_t cases, double required);

/// Sets what is required of each class and whether it is met. A run that draws only some kinds of
/// scenario (`focused`) is asked for none.
void judge_coverage(RunRecord& record, bool focused);

}  // namespace kvcheck::properties
