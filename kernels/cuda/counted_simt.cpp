// The steps under the SIMT runtime, counted launch by launch.
#include <stdexcept>

#include "kernels/cuda/counted_steps.h"
#include "kernels/cuda/simt_machine.h"

namespace kvcheck::kernels::device {
namespace {

simt::Counters difference(const simt::Counters& a, const simt::Counters& b) {
  return {.shared_accesses = a.shared_accesses - b.shared_accesses,
          .bank_conflicts = a.bank_conflicts - b.bank_conflicts,
          .global_loads = a.global_loads - b.global_loads,
          .global_load_bytes = a.global_load_bytes - b.global_load_bytes,
          .global_load_sectors = a.global_load_sectors - b.global_load_sectors,
          .global_stores = a.global_stores - b.global_stores,
          .global_store_bytes = a.global_store_bytes - b.global_store_bytes,
          .global_store_sectors = a.global_store_sectors - b.global_store_sectors,
          .block_barriers = a.block_barriers - b.block_barriers,
          .matrix_products = a.matrix_products - b.matrix_products};
}

/// What the machine counts of one call.
simt::Counters counted(SimtMachine& machine, const CountedStep& step, const KernelTable& table) {
  const simt::Counters before = machine.counters();
  step.call(table);
  if (const auto failure = machine.finish()) {
    throw std::runtime_error(step.name + ": " + failure->detail);
  }
  return difference(machine.counters(), before);
}

}  // namespace

std::vector<CountedLaunch> simt_counted_launches() {
  SimtMachine machine(simt_kernels(), {});
  const KernelTable last = last_launches();
  std::vector<CountedLaunch> launches;
  for (const CountedStep& step : counted_steps(machine, simt_probe)) {
    const simt::Counters all = counted(machine, step, machine.kernels());
    if (step.kernels.size() == 1) {
      launches.push_back({step.name, step.kernels[0], all});
      continue;
    }
    // A queue counts what it was given as a whole. The second launch once more is the second alone,
    // and the rest was the first.
    const simt::Counters second = counted(machine, step, last);
    launches.push_back({step.name, step.kernels[0], difference(all, second)});
    launches.push_back({step.name, step.kernels[1], second});
  }
  return launches;
}

}  // namespace kvcheck::kernels::device
