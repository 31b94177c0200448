// Launches of test kernels under the SIMT runtime.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

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

  template <class T>
  T* allocate(std::size_t count, Use use = Use::read_write) {
    return reinterpret_cast<T*>(memory.allocate(count * sizeof(T), use, "memory of the test"));
  }
};

/// Sentences of the defects, so that a failure shows what was found.
inline std::vector<std::string> sentences_of(const std::vector<Defect>& defects) {
  std::vector<std::string> all;
  for (const Defect& defect : defects) all.push_back(defect.sentence());
  return all;
}

/// The one defect of the launch; says so where there is another number of them.
inline Defect only_defect(SimtQueue& queue) {
  const std::vector<Defect> defects = queue.take_defects();
  EXPECT_EQ(defects.size(), 1U) << testing::PrintToString(sentences_of(defects));
  return defects.empty() ? Defect{} : defects.front();
}

}  // namespace kvcheck::kernels::simt
