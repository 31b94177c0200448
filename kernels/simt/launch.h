// Runs a kernel on fibers: one for each CUDA thread, a block at a time.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "kernels/cuda/element.h"
#include "kernels/cuda/queue.h"
#include "kernels/simt/counters.h"
#include "kernels/simt/defect.h"
#include "kernels/simt/global_memory.h"
#include "kernels/simt/monitor.h"
#include "kernels/simt/schedule.h"

namespace kvcheck::kernels::simt {

/// Where launches of the SIMT runtime go: memory, schedule and checks, and what came of them.
class SimtQueue final : public device::Queue {
 public:
  SimtQueue(GlobalMemory& memory, const Schedule& schedule, const Checks& checks)
      : memory_(&memory), schedule_(schedule), checks_(checks) {}

  /// Runs body(parameters) as every thread of the launch. Each launch of a queue runs under a
  /// seed of its own, made from the schedule's and its number. After a defect that leaves a block
  /// stuck (deadlock, divergence) the rest of the launch is given up.
  /// \param kernel the code that `body` calls, for its name; null = body itself
  void run(void (*body)(const void*), const device::LaunchShape& shape, const void* parameters,
           const void* kernel = nullptr);

  /// Defects of all launches since the last call.
  std::vector<Defect> take_defects();
  /// The code of the kernels that were launched since then, in order.
  std::span<const void* const> kernels() const { return kernels_; }
  const Counters& counters() const { return counters_; }

 private:
  GlobalMemory* memory_;
  Schedule schedule_;
  Checks checks_;
  std::uint64_t launches_ = 0;
  Counters counters_;
  std::vector<Defect> defects_;
  std::vector<const void*> kernels_;
};

}  // namespace kvcheck::kernels::simt
