// How a table gets its faulty launch; one function for each translation unit of faulty copies.
#pragma once

#include "kernels/cuda/kernel_table.h"
#include "kernels/cuda/planted.h"

namespace kvcheck::kernels::device {

/// Faults of append, move and unfused. \return whether the fault is one of them
bool plant_in_rows(Fault fault, KernelTable& table);
/// Of decode, decode_matrix and merge.
bool plant_in_decode(Fault fault, KernelTable& table);
/// Of prefill.
bool plant_in_prefill(Fault fault, KernelTable& table);

}  // namespace kvcheck::kernels::device
