// The probes under the SIMT runtime. Instrumented: it is kernel code.
#include "kernels/cuda/counted_probe.cuh"

namespace kvcheck::kernels::device {

void simt_probe(Queue& queue, Probe probe, const ProbeParameters& p) {
  launch_probe(queue, probe, p);
}

}  // namespace kvcheck::kernels::device
