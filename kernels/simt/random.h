// Draws of a schedule: the same seed gives the same draws on every machine.
#pragma once

#include <cstdint>

namespace kvcheck::kernels::simt {

/// SplitMix64 (Steele, Lea, Flood 2014).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15U;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
  }

  /// In [0, limit). \pre 0 < limit <= 2^32; the bias is below limit / 2^32
  std::uint32_t below(std::uint64_t limit) {
    return static_cast<std::uint32_t>(((next() >> 32) * limit) >> 32);
  }

 private:
  std::uint64_t state_;
};

}  // namespace kvcheck::kernels::simt
