// The kernels as nvcc compiles them.
#include "kernels/cuda/launchers.inc"

namespace kvcheck::kernels::device {

const KernelTable* gpu_kernels() { return &kTable; }

const char* why_no_gpu_kernels() { return ""; }

}  // namespace kvcheck::kernels::device
