// Faulty copies of prefill, for f16 and up to 64 lanes. Compiled with instrumentation.
#include "kernels/cuda/planted_tables.h"
#include "kernels/cuda/prefill_launch.cuh"

namespace kvcheck::kernels::device {
namespace {

/// Heads of another kind are answered by the healthy kernel.
template <Fault kFault>
void launch_planted(Queue& queue, const AttentionLaunch& how, const AttentionParameters& p) {
  if (how.element == Element::f16 && p.head_size <= 64 && p.value_head_size <= 64) {
    return launch_prefill<kFault>(queue, how, p);
  }
  simt_kernels().prefill(queue, how, p);
}

template <Fault... kFaults>
bool plant(Fault fault, KernelTable& table, FaultList<kFaults...>) {
  return ((fault == kFaults && (table.prefill = launch_planted<kFaults>, true)) || ...);
}

}  // namespace

bool plant_in_prefill(Fault fault, KernelTable& table) {
  return plant(fault, table, PrefillFaults());
}

}  // namespace kvcheck::kernels::device
