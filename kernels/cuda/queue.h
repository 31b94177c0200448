// What launches are given to, in either world.
#pragma once

namespace kvcheck::kernels::device {

/// GpuQueue (gpu_queue.h) on a GPU, simt::SimtQueue (kernels/simt/launch.h) on a CPU.
class Queue {
 public:
  virtual ~Queue() = default;
};

}  // namespace kvcheck::kernels::device
