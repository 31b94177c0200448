// The probes on a GPU.
#include "kernels/cuda/counted_probe.cuh"

namespace kvcheck::kernels::device {

void gpu_probe(Queue& queue, Probe probe, const ProbeParameters& p) {
  launch_probe(queue, probe, p);
}

}  // namespace kvcheck::kernels::device
