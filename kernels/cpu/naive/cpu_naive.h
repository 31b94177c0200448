// cpu-naive: the plain CPU target, and copies of it with one planted fault each.
#pragma once

#include <memory>
#include <string_view>

#include "kernels/target.h"

namespace kvcheck::kernels {

/// GroupQueryAttention with a full or block-evicting cache, Attention of opsets 23 and 24.
/// One thread, two-pass softmax, sums in ascending order of position.
std::unique_ptr<Target> make_cpu_naive();

/// The same with one planted fault of cpu_naive_faults() (kernels/cpu/naive/faults.h).
/// nullptr where `fault` names none of them.
std::unique_ptr<Target> make_cpu_naive(std::string_view fault);

}  // namespace kvcheck::kernels
