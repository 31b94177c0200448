// Elements that a cache stores, as types: what tells the loads of the tile kernels apart.
#pragma once

#include <bit>
#include <cstdint>

namespace kvcheck::kernels::flash {

struct Half {
  std::uint16_t bits;
};
struct Bfloat {
  std::uint16_t bits;
};
/// Two codes of 4 bits: (even + 8) | (odd + 8) << 4.
struct Nibbles {
  std::uint8_t bits;
};

/// Lanes of one element.
template <class Element>
inline constexpr std::int64_t kLanesPerElement = 1;
template <>
inline constexpr std::int64_t kLanesPerElement<Nibbles> = 2;

// One lane as f32, exactly.
inline float element_at(const float* row, std::int64_t lane) { return row[lane]; }
inline float element_at(const Bfloat* row, std::int64_t lane) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(row[lane].bits) << 16);
}
inline float element_at(const Half* row, std::int64_t lane) {
  const std::uint32_t bits = row[lane].bits;
  const std::uint32_t sign = (bits & 0x8000u) << 16, magnitude = bits & 0x7fffu;
  // Shifted into place the exponent is 112 too small; 2^112 mends that, and subnormals with it.
  const float scaled = std::bit_cast<float>(magnitude << 13) * 0x1p112f;
  const std::uint32_t special = magnitude >= 0x7c00u ? 0x7f800000u : 0;
  return std::bit_cast<float>(sign | special | std::bit_cast<std::uint32_t>(scaled));
}
inline float element_at(const std::int8_t* row, std::int64_t lane) {
  return static_cast<float>(row[lane]);
}
inline float element_at(const Nibbles* row, std::int64_t lane) {
  return static_cast<float>((row[lane / 2].bits >> (lane % 2 * 4) & 15) - 8);
}

// f32 to 16 bits, to nearest even.
inline Bfloat to_bfloat(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return {0x7fc0};
  return {static_cast<std::uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16)};
}
inline Half to_half(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000u);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return {0x7e00};
  if (magnitude >= 0x477ff000u) return {static_cast<std::uint16_t>(sign | 0x7c00u)};
  if (magnitude < 0x38800000u) {
    // Subnormal: adding 0.5 puts the last place where a half has it, and rounds there.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return {
        static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000u))};
  }
  const std::uint32_t rounded = magnitude + 0xfffu + (magnitude >> 13 & 1u);
  return {static_cast<std::uint16_t>(sign | ((rounded - 0x38000000u) >> 13))};
}

}  // namespace kvcheck::kernels::flash
