// Launches of test kernels under the SIMT runtime.
#pragma once

#include <string>
#include <vector>

#include "kernels/cuda/device.cuh"
#include "kernels/simt/launch.h"

namespace kvcheck::kernels::simt {

inline constexpr Order kAllOrders[] = {Order::lockstep, Order::random, Order::reverse,
                                       Order::priority, Order::starve};

/// A queue with memory of its own.
struct TestQueue {
  GlobalMemory memory;
  SimtQueue queue;
  explicit TestQueue(Schedule schedule = {}, Checks checks = {})
      : queue(memory, schedule, checks) {}
};

}  // namespace kvcheck::kernels::simt
