// Canaries: what one core gives at the moment, measured beside each block of a benchmark.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kvcheck::kernels::bench {

/// Floating-point operations per nanosecond (GFLOP/s) of a loop of fused multiply-adds on
/// registers, in the widest vectors that this processor has; an FMA counts as two. Best of several
/// bursts within `seconds`.
double fma_rate(double seconds);

/// Bytes per nanosecond (GB/s) of plain reads over a buffer of its own, which lies on huge pages
/// where the system gives them.
class ReadCanary {
 public:
  /// \throws std::bad_alloc
  explicit ReadCanary(std::size_t bytes);
  ~ReadCanary();
  ReadCanary(const ReadCanary&) = delete;
  ReadCanary& operator=(const ReadCanary&) = delete;

  std::size_t bytes() const { return bytes_; }
  /// Median over whole passes within `seconds`, at least three.
  double rate(double seconds);

 private:
  std::size_t bytes_;
  void* memory_ = nullptr;
};

}  // namespace kvcheck::kernels::bench
