// Memory and launches of the SIMT runtime for tests of single kernels.
#pragma once

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cuda/kernel_table.h"
#include "kernels/simt/launch.h"

namespace kvcheck::kernels::device {

inline constexpr simt::Order kAllOrders[] = {simt::Order::lockstep, simt::Order::random,
                                             simt::Order::reverse, simt::Order::priority,
                                             simt::Order::starve};

class World {
 public:
  explicit World(simt::Order order, std::uint64_t seed = 1)
      : queue_(memory_, simt::Schedule{order, seed}, simt::Checks()) {}

  simt::SimtQueue& queue() { return queue_; }
  simt::GlobalMemory& memory() { return memory_; }

  /// Bytes of the host, `shift` bytes behind an address of 256. \pre not empty
  template <class T>
  T* put(const std::vector<T>& values, simt::Use use, std::string name, std::size_t shift = 0) {
    const std::size_t bytes = values.size() * sizeof(T);
    std::byte* const at = memory_.allocate(bytes + shift, use, std::move(name)) + shift;
    std::memcpy(at, values.data(), bytes);
    return reinterpret_cast<T*>(at);
  }

  template <class T>
  std::vector<T> get(const T* from, std::size_t count) const {
    std::vector<T> values(count);
    std::memcpy(values.data(), from, count * sizeof(T));
    return values;
  }

 private:
  simt::GlobalMemory memory_;
  simt::SimtQueue queue_;
};

/// What a launch left behind.
struct Outcome {
  std::vector<std::byte> bytes;  ///< Of everything that it may write.
  std::vector<simt::Defect> defects;
};

inline void expect_none(const std::vector<simt::Defect>& defects) {
  for (const simt::Defect& defect : defects) ADD_FAILURE() << defect.sentence();
}

template <class T>
void append_bytes(std::vector<std::byte>& bytes, const std::vector<T>& values) {
  const auto* first = reinterpret_cast<const std::byte*>(values.data());
  bytes.insert(bytes.end(), first, first + values.size() * sizeof(T));
}

}  // namespace kvcheck::kernels::device
