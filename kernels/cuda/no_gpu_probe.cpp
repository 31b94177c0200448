// In place of counted_probe_gpu.cu where there is no CUDA compiler.
#include "kernels/cuda/counted_probe.h"

namespace kvcheck::kernels::device {

void gpu_probe(Queue&, Probe, const ProbeParameters&) {}

}  // namespace kvcheck::kernels::device
