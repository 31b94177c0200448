// The targets cuda and cuda-q8: the kernels of kernels/cuda on a GPU.
#pragma once

#include <memory>
#include <string>

#include "kernels/target.h"

namespace kvcheck::kernels {

/// Why the targets cannot run here, and the remedy, to follow their name; empty where they can.
std::string cuda_problem();

/// Null where cuda_problem() is not empty. \param quantised int8 caches alone
std::unique_ptr<Target> make_cuda(bool quantised);

}  // namespace kvcheck::kernels
