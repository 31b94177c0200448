// A machine that is a GPU.
#pragma once

#include <memory>
#include <string>

#include "kernels/cuda/machine.h"

namespace kvcheck::kernels::device {

/// Why there is no GPU to run on, and the remedy; empty where there is one. Asks the driver once.
std::string gpu_problem();

/// "NVIDIA H200, sm_90, CUDA 13.0"; empty where gpu_problem() is not.
std::string gpu_name();

/// Null where gpu_problem() is not empty.
std::unique_ptr<Machine> make_gpu_machine();

}  // namespace kvcheck::kernels::device
