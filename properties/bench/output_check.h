// Timed outputs against the exact model: each is checked once, so that no wrong kernel is timed.
#pragma once

#include "kernels/bench/timed_step.h"
#include "kernels/target.h"

namespace kvcheck::properties {

/// Largest bound ratio of some of the outputs that a run left: first, middle and last query of a
/// prefill, and of each the first, a middle and the last query head. Above 1 is wrong.
/// A quantised cache is judged as an f32 cache of the same numbers, which the benchmarks' scales
/// make exact.
double worst_bound_ratio(const kernels::bench::Problem& problem, kernels::bench::TimedStep& step,
                         const kernels::Capabilities& target);

}  // namespace kvcheck::properties
