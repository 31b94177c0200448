// Faulty copies of prefill, of f16 and up to 64 lanes alone. Compiled with instrumentation.
#include "kernels/cuda/planted_tables.h"
#include "kernels/cuda/prefill_launch.cuh"

namespace kvcheck::kernels::device {
namespace {

template <Fault... kFaults>
bool plant(Fault fault, KernelTable& table, FaultList<kFaults...>) {
  return ((fault == kFaults && (table.prefill = launch_prefill<kFaults>, true)) || ...);
}

}  // namespace

bool plant_in_prefill(Fault fault, KernelTable& table) {
  return plant(fault, table, PrefillFaults());
}

}  // namespace kvcheck::kernels::device
