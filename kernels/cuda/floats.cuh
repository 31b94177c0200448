// Floats of memory in accesses of 4, 8 and 16 bytes.
#pragma once

#include <cstdint>

#include "kernels/cuda/device.cuh"

namespace kvcheck::kernels::device::decoding {
namespace {

KV_DEVICE float float_of_bits(std::uint32_t bits) {
  float value;
  __builtin_memcpy(&value, &bits, 4);
  return value;
}
KV_DEVICE std::uint32_t bits_of_float(float value) {
  std::uint32_t bits;
  __builtin_memcpy(&bits, &value, 4);
  return bits;
}

/// kCount neighbouring floats of shared memory in one access, and back.
template <int kCount>
KV_DEVICE void load_floats(const float* from, float* to) {
  if constexpr (kCount >= 4) {
    const Packet packet = load_packet(from);
    KV_UNROLL
    for (int i = 0; i < 4; ++i) to[i] = float_of_bits(packet.word[i]);
  } else if constexpr (kCount == 2) {
    const std::uint64_t both = *reinterpret_cast<const std::uint64_t*>(from);
    to[0] = float_of_bits(static_cast<std::uint32_t>(both));
    to[1] = float_of_bits(static_cast<std::uint32_t>(both >> 32));
  } else {
    to[0] = *from;
  }
}
template <int kCount>
KV_DEVICE void store_floats(float* to, const float* from) {
  if constexpr (kCount >= 4) {
    store_packet(to, Packet{{bits_of_float(from[0]), bits_of_float(from[1]), bits_of_float(from[2]),
                             bits_of_float(from[3])}});
  } else if constexpr (kCount == 2) {
    *reinterpret_cast<std::uint64_t*>(to) =
        bits_of_float(from[0]) | static_cast<std::uint64_t>(bits_of_float(from[1])) << 32;
  } else {
    *to = from[0];
  }
}

}  // namespace
}  // namespace kvcheck::kernels::device::decoding
