// The targets cuda-simt and cuda-simt-q8: the kernels of kernels/cuda, executed on this CPU.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "kernels/cuda/planted.h"
#include "kernels/target.h"

namespace kvcheck::kernels {

/// GroupQueryAttention and Attention in f32, f16 and bf16.
std::unique_ptr<Target> make_cuda_simt();

/// GroupQueryAttention with int8 caches.
std::unique_ptr<Target> make_cuda_simt_quantised();

/// The same with a planted fault, as it is called. \param quantised int8 caches
std::unique_ptr<Target> make_cuda_simt(device::Fault fault, bool quantised, std::string name);

}  // namespace kvcheck::kernels
