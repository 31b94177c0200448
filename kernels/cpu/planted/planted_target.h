// Copies of the own kernels with one planted fault.
#pragma once

#include <memory>
#include <string_view>

#include "kernels/target.h"

namespace kvcheck::kernels {

/// `target` with the fault of that name (planted_faults()); with `one_row`, as FaultInfo::one_row
/// says. nullptr where the target has no such fault, or not in single rows.
std::unique_ptr<Target> make_planted(std::string_view target, std::string_view fault,
                                     bool one_row = false);

}  // namespace kvcheck::kernels
