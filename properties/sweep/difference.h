// Two targets on one scenario: every bit that the contract gives a meaning.
#pragma once

#include <cstdint>
#include <string>

#include "properties/case.h"
#include "properties/execution.h"

namespace kvcheck::properties {

struct TargetDifference {
  /// "step 1 (append 2): output of batch entry 0, query 0, head 1, lane 3 is 0.25 against 0.5"; of
  /// the first difference. Empty = every bit is the same.
  std::string text;
  /// Largest |a - b| / bound over the outputs, both finite; infinite where one is not, or where
  /// other things differ than outputs.
  double ratio = 0;
};

/// Compares what both were told to answer: whether a step was taken, the outputs of every query,
/// intermediates of the keys that exist, and the resident rows. Padding is left out.
TargetDifference compare_targets(Case& main, const Execution& other);

}  // namespace kvcheck::properties
