// What a build without a CUDA compiler says of GPUs.
#include "kernels/cuda/gpu_machine.h"

namespace kvcheck::kernels::device {

std::string gpu_problem() { return why_no_gpu_kernels(); }
std::string gpu_name() { return ""; }
std::unique_ptr<Machine> make_gpu_machine() { return nullptr; }

}  // namespace kvcheck::kernels::device
