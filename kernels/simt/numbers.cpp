// Numbers of the vocabulary (kernels/simt/device.h) in plain bits, so that every machine agrees.
#include <bit>
#include <cmath>
#include <cstdint>

#include "kernels/simt/device.h"

namespace kvcheck::kernels::device {
namespace {

constexpr std::uint16_t kHalfNan = 0x7fff;  // What the GPU's conversions make of any NaN.

}  // namespace

float to_float(F16 x) {
  const std::uint32_t sign = static_cast<std::uint32_t>(x.bits & 0x8000U) << 16;
  const std::uint32_t field = x.bits >> 10 & 0x1fU;
  const std::uint32_t fraction = x.bits & 0x3ffU;
  if (field == 31) {
    const std::uint32_t quiet = fraction != 0 ? 0x400000U : 0;
    return std::bit_cast<float>(sign | 0x7f800000U | quiet | fraction << 13);
  }
  if (field == 0) {
    const float size = static_cast<float>(fraction) * 0x1p-24F;
    return sign != 0 ? -size : size;
  }
  return std::bit_cast<float>(sign | (field + 112) << 23 | fraction << 13);
}

float to_float(BF16 x) { return std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16); }

F16 f16_from(float x) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t size = bits & 0x7fffffffU;
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000U);
  if (size > 0x7f800000U) return {kHalfNan};
  // 65520 is the tie between the largest number and the next power of two, which is even.
  if (size >= 0x477ff000U) return {static_cast<std::uint16_t>(sign | 0x7c00U)};
  if (size < 0x38800000U) {  // Below the least normal number: a multiple of 2^-24.
    const float shifted = std::bit_cast<float>(size) + 0.5F;  // The sum rounds to that multiple.
    const std::uint32_t steps = std::bit_cast<std::uint32_t>(shifted) - 0x3f000000U;
    return {static_cast<std::uint16_t>(sign | steps)};
  }
  const std::uint32_t odd = size >> 13 & 1U;
  const std::uint32_t rounded = size + 0xfffU + odd - (112U << 23);
  return {static_cast<std::uint16_t>(sign | rounded >> 13)};
}

BF16 bf16_from(float x) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return {kHalfNan};
  const std::uint32_t odd = bits >> 16 & 1U;
  return {static_cast<std::uint16_t>((bits + 0x7fffU + odd) >> 16)};
}

float exp2_approx(float x) {
  const auto y = static_cast<float>(std::exp2(static_cast<double>(x)));
  return y < 0x1p-126F ? 0.0F : y;
}

float tanh_of(float x) { return static_cast<float>(std::tanh(static_cast<double>(x))); }

float fused(float a, float b, float c) { return std::fma(a, b, c); }

float larger(float a, float b) {
  if (std::isnan(a)) return b;
  if (a == b) return std::signbit(a) ? b : a;  // +0 is above -0.
  return a > b || std::isnan(b) ? a : b;
}

float smaller(float a, float b) {
  if (std::isnan(a)) return b;
  if (a == b) return std::signbit(a) ? a : b;
  return a < b || std::isnan(b) ? a : b;
}

}  // namespace kvcheck::kernels::device
