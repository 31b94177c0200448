// Faulty copies of append, move and unfused. Compiled with instrumentation.
#include "kernels/cuda/append.cuh"
#include "kernels/cuda/move.cuh"
#include "kernels/cuda/planted_tables.h"
#include "kernels/cuda/unfused.cuh"

namespace kvcheck::kernels::device {
namespace {

template <Fault... kFaults>
bool plant_in_append(Fault fault, KernelTable& table, FaultList<kFaults...>) {
  return ((fault == kFaults && (table.append = launch_append<kFaults>, true)) || ...);
}

template <Fault... kFaults>
bool plant_in_move(Fault fault, KernelTable& table, FaultList<kFaults...>) {
  return ((fault == kFaults && (table.move = launch_move<kFaults>, true)) || ...);
}

template <Fault... kFaults>
bool plant_in_unfused(Fault fault, KernelTable& table, FaultList<kFaults...>) {
  return ((fault == kFaults && (table.unfused = launch_unfused<kFaults>, true)) || ...);
}

}  // namespace

bool plant_in_rows(Fault fault, KernelTable& table) {
  return plant_in_append(fault, table, AppendFaults()) ||
         plant_in_move(fault, table, MoveFaults()) ||
         plant_in_unfused(fault, table, UnfusedFaults());
}

}  // namespace kvcheck::kernels::device
