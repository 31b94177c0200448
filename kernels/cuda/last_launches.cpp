// The second launches of the kernel table alone. Instrumented: it is kernel code.
#include "kernels/cuda/counted_steps.h"
#include "kernels/cuda/decode_launch.cuh"
#include "kernels/cuda/unfused.cuh"

namespace kvcheck::kernels::device {
namespace {

void merge(Queue& queue, const AttentionLaunch&, const AttentionParameters& p) {
  decoding::launch_merge<F16, Fault::none>(queue, p);
}

/// As launch_unfused_of does it.
void unfused_values(Queue& queue, const AttentionLaunch& how, const AttentionParameters& p) {
  LaunchShape shape;
  shape.grid.x = static_cast<std::uint32_t>(p.queries * p.query_heads * p.batch);
  shape.threads = how.threads;
  shape.shared_bytes = kMostThreads / 32 * sizeof(float);
  launch(queue, unfused_values_kernel<F16, F16, Fault::none>, shape, p);
}

}  // namespace

KernelTable last_launches() {
  return {.append = nullptr,
          .move = nullptr,
          .unfused = unfused_values,
          .decode = merge,
          .decode_matrix = merge,
          .prefill = nullptr};
}

}  // namespace kvcheck::kernels::device
