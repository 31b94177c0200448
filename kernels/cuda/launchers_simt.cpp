// The kernels as the SIMT runtime runs them. Compiled with instrumentation.
#include "kernels/cuda/launchers.inc"

namespace kvcheck::kernels::device {

const KernelTable& simt_kernels() { return kTable; }

}  // namespace kvcheck::kernels::device
