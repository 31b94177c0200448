// cpu-naive and its quantised siblings: the plain CPU targets, and copies with one planted fault.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "kernels/cpu/planted/faults.h"
#include "kernels/target.h"

namespace kvcheck::kernels {

/// GroupQueryAttention with any layout and Attention of opsets 23 to 25; caches in the element
/// type. One thread, two-pass softmax, sums in ascending order of position.
std::unique_ptr<Target> make_cpu_naive();

/// cpu-naive-q8 (kind "int8") and cpu-naive-q4 ("int4"): GroupQueryAttention whose cache holds
/// codes, and nothing else. nullptr for other kinds.
std::unique_ptr<Target> make_cpu_naive_quantised(std::string_view kind);

/// cpu-naive with one planted fault; nullptr where `fault` names none of it.
std::unique_ptr<Target> make_cpu_naive(std::string_view fault);

/// cpu-naive or a sibling with that fault, as it is called. \param kind "none", "int8" or "int4"
std::unique_ptr<Target> make_cpu_naive(Fault fault, std::string_view kind, std::string name);

}  // namespace kvcheck::kernels
