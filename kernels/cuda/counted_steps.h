// The launches whose memory traffic is counted twice: by the SIMT runtime, and by a profiler on a
// GPU (device_check.sh, compare_counters.py). Both worlds make the same ones in the same order, on
// memory that is aligned alike.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kernels/cuda/counted_probe.h"
#include "kernels/cuda/kernel_table.h"
#include "kernels/cuda/machine.h"
#include "kernels/simt/counters.h"

namespace kvcheck::kernels::device {

/// One call of a kernel table, with the memory that it works on.
struct CountedStep {
  std::string name;                  ///< "decode, one split".
  std::vector<std::string> kernels;  ///< Functions that a call launches, in this order.
  /// Makes the launches; any number of times. Takes the table apart from the machine, so that one
  /// of them can be made alone.
  std::function<void(const KernelTable&)> call;
};

/// f16; every kernel; batches that are ragged, caches that are windowed, keys in several splits;
/// and the probes. The steps hold memory of the machine, which outlives them. Where it has not
/// enough, Machine::finish() says so. \param probe simt_probe or gpu_probe, that of the machine's
/// world
std::vector<CountedStep> counted_steps(Machine& machine, ProbeLaunch probe);

/// What the SIMT runtime counted of one launch.
struct CountedLaunch {
  std::string step, kernel;
  simt::Counters counters;
};

/// Every launch of counted_steps() under the runtime, in lockstep. Not in builds without it.
/// \throws std::runtime_error a defect of a kernel, in words
std::vector<CountedLaunch> simt_counted_launches();

/// Of each entry of simt_kernels() that makes two launches the second one alone, for f16 rows and
/// f16 caches; the others are null. Given what that entry has left in memory, it reads and writes
/// what it did as a part of it. Not in builds without the runtime.
KernelTable last_launches();

}  // namespace kvcheck::kernels::device
