// One case per planted fault: a short sequence, the right answer and the fault's answer by hand.
#pragma once

#include <functional>
#include <vector>

#include "tests/kernels/cpu_sequence.h"

namespace kvcheck::kernels {

struct FaultCase {
  const char* fault;
  SessionConfig config;
  std::function<Numbers(Sequence&)> run;
  Numbers right, wrong;
};

/// Mask origin, window edge, empty rows, unused rows, heads, mask tensor, precision.
std::vector<FaultCase> attention_fault_cases();
/// Lengths, layout, staging, rollback, batch, step split.
std::vector<FaultCase> cache_fault_cases();

}  // namespace kvcheck::kernels
