// The targets cuda-simt and cuda-simt-q8: the kernels of kernels/cuda, executed on this CPU.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/registry.h"
#include "kernels/target.h"

namespace kvcheck::kernels {

/// Why the targets cannot run here, to follow their name; empty where they can.
std::string cuda_simt_problem();

/// GroupQueryAttention and Attention in f32, f16 and bf16.
std::unique_ptr<Target> make_cuda_simt();

/// GroupQueryAttention with int8 caches.
std::unique_ptr<Target> make_cuda_simt_quantised();

/// Planted faults of both that answers or defects show; those that only a counter shows are left to
/// the tests of the kernels.
std::vector<FaultInfo> cuda_simt_faults();

/// One of the two with a planted fault; null where cuda_simt_faults() has none of that name.
std::unique_ptr<Target> make_cuda_simt_planted(std::string_view target, std::string_view fault);

}  // namespace kvcheck::kernels
