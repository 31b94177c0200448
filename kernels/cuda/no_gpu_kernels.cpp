// In place of launchers_gpu.cu where there is no CUDA compiler.
#include "kernels/cuda/kernel_table.h"

namespace kvcheck::kernels::device {

const KernelTable* gpu_kernels() { return nullptr; }

const char* why_no_gpu_kernels() { return KVCHECK_WHY_NO_CUDA; }

}  // namespace kvcheck::kernels::device
