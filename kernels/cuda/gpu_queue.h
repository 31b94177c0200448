// Where launches of the GPU go: a stream, and the first error that came of it.
#pragma once

#include <cuda_runtime.h>

#include "kernels/cuda/queue.h"

namespace kvcheck::kernels::device {

class GpuQueue final : public Queue {
 public:
  explicit GpuQueue(cudaStream_t stream = nullptr) : stream_(stream) {}

  cudaStream_t stream() const { return stream_; }
  void note(cudaError_t status) {
    if (first_ == cudaSuccess) first_ = status;
  }
  /// The first error since the last call.
  cudaError_t take_error() {
    const cudaError_t error = first_;
    first_ = cudaSuccess;
    return error;
  }

 private:
  cudaStream_t stream_;
  cudaError_t first_ = cudaSuccess;
};

}  // namespace kvcheck::kernels::device
