// Tile kernels with a planted fault.
#pragma once

#include "kernels/cpu/flash/kernels.h"
#include "kernels/cpu/planted/faults.h"
#include "kernels/target.h"

namespace kvcheck::kernels::flash {

/// The table of the portable kernels in which `fault` is planted; `right` where it lies elsewhere,
/// or does not show in such a session.
const Kernels& distort_kernels(Fault fault, const SessionConfig& config, const Kernels& right);

}  // namespace kvcheck::kernels::flash
