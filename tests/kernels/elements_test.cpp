// Halves and bfloats both ways, every one of them, against Eigen's conversions and by hand.
#include "kernels/cpu/flash/elements.h"

#include <cmath>
#include <cstring>
#include <limits>

#include <gtest/gtest.h>

#include "kernels/cpu/element.h"

namespace kvcheck::kernels::flash {
namespace {

/// What the bits of a 16-bit number mean, from its definition.
double meaning(std::uint32_t bits, int mantissa_bits, int bias) {
  const double sign = (bits >> 15 & 1) != 0 ? -1 : 1;
  const int exponents = 15 - mantissa_bits;
  const auto mantissa = static_cast<double>(bits & ((1u << mantissa_bits) - 1));
  const int exponent = static_cast<int>(bits >> mantissa_bits & ((1u << exponents) - 1));
  const double fraction = std::ldexp(mantissa, -mantissa_bits);
  if (exponent == (1 << exponents) - 1) {
    return mantissa == 0 ? sign * std::numeric_limits<double>::infinity()
                         : std::numeric_limits<double>::quiet_NaN();
  }
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias);
  return sign * std::ldexp(1 + fraction, exponent - bias);
}

bool same(float a, double b) {
  if (std::isnan(b)) return std::isnan(a);
  return a == static_cast<float>(b) && std::signbit(a) == std::signbit(b);
}

TEST(Halves, AllReadAsWhatTheyMean) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const Half half{static_cast<std::uint16_t>(bits)};
    ASSERT_TRUE(same(element_at(&half, 0), meaning(bits, 10, 15))) << bits;
  }
}

TEST(Bfloats, AllReadAsWhatTheyMean) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const Bfloat bfloat{static_cast<std::uint16_t>(bits)};
    ASSERT_TRUE(same(element_at(&bfloat, 0), meaning(bits, 7, 127))) << bits;
  }
}

/// Writes every number, every middle between two neighbours and what lies just beside it.
template <class Make>
void expect_nearest_even(int mantissa_bits, int bias, Make make) {
  const std::uint32_t infinity = ((1u << (15 - mantissa_bits)) - 1) << mantissa_bits;
  for (std::uint32_t bits = 0; bits < infinity; ++bits) {
    const auto here = static_cast<float>(meaning(bits, mantissa_bits, bias));
    ASSERT_EQ(make(here), bits);
    ASSERT_EQ(make(-here), bits | 0x8000u);
    // Beyond the largest number the next one would be 2^16 or 2^128.
    const double next =
        bits + 1 == infinity ? std::ldexp(1.0, bias + 1) : meaning(bits + 1, mantissa_bits, bias);
    const auto middle = static_cast<float>((here + next) / 2);
    if (middle == here || std::isinf(middle)) continue;  // f32 has no number between.
    const std::uint32_t even = bits + (bits & 1);
    ASSERT_EQ(make(middle), even) << bits;
    ASSERT_EQ(make(std::nextafter(middle, 0.0f)), bits);
    ASSERT_EQ(make(std::nextafter(middle, std::numeric_limits<float>::infinity())), bits + 1);
    ASSERT_EQ(make(-middle), even | 0x8000u);
  }
}

TEST(Halves, AreWrittenToNearestEven) {
  expect_nearest_even(10, 15, [](float value) { return to_half(value).bits; });
  EXPECT_EQ(to_half(65519.996f).bits, 0x7bff);
  EXPECT_EQ(to_half(65520.0f).bits, 0x7c00);  // The middle between 65504 and 65536.
  EXPECT_EQ(to_half(1e30f).bits, 0x7c00);
  EXPECT_EQ(to_half(0x1p-25f).bits, 0);  // Half of the least subnormal.
  EXPECT_EQ(to_half(std::nextafter(0x1p-25f, 1.0f)).bits, 1);
  EXPECT_EQ(to_half(std::numeric_limits<float>::denorm_min()).bits, 0);
}

TEST(Bfloats, AreWrittenToNearestEven) {
  expect_nearest_even(7, 127, [](float value) { return to_bfloat(value).bits; });
  EXPECT_EQ(to_bfloat(std::numeric_limits<float>::max()).bits, 0x7f80);
  EXPECT_EQ(to_bfloat(0x1.00fffep0f).bits, 0x3f80);
}

TEST(Elements, OfInfinityAndNaNAreThoseOfThe16BitTypes) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(to_half(kInfinity).bits, 0x7c00);
  EXPECT_EQ(to_half(-kInfinity).bits, 0xfc00);
  EXPECT_EQ(to_bfloat(kInfinity).bits, 0x7f80);
  EXPECT_EQ(to_bfloat(-kInfinity).bits, 0xff80);
  for (const std::uint32_t bits : {0x7f800001u, 0x7fffffffu, 0xff800001u, 0xffc00000u}) {
    float nan = 0;
    std::memcpy(&nan, &bits, sizeof nan);
    EXPECT_EQ(to_half(nan).bits, 0x7e00);
    EXPECT_EQ(to_bfloat(nan).bits, 0x7fc0);
  }
}

TEST(Elements, AreThoseThatTensorsHold) {
  // The same numbers as the conversions of tensors give, which are Eigen's.
  for (std::uint32_t step = 0; step < 1u << 20; ++step) {
    const std::uint32_t bits = step * 4093u;  // An odd factor: spread over all floats.
    float value = 0;
    std::memcpy(&value, &bits, sizeof value);
    if (std::isnan(value)) continue;
    std::uint16_t half = 0, bfloat = 0;
    encode_element(ElementType::f16, value, reinterpret_cast<std::byte*>(&half));
    encode_element(ElementType::bf16, value, reinterpret_cast<std::byte*>(&bfloat));
    ASSERT_EQ(to_half(value).bits, half) << bits;
    ASSERT_EQ(to_bfloat(value).bits, bfloat) << bits;
  }
}

TEST(Codes, OfFourBitsLieTwoInAByte) {
  for (int even = -8; even < 8; ++even) {
    for (int odd = -8; odd < 8; ++odd) {
      const Nibbles byte{static_cast<std::uint8_t>((even + 8) | (odd + 8) << 4)};
      ASSERT_EQ(element_at(&byte, 0), static_cast<float>(even));
      ASSERT_EQ(element_at(&byte, 1), static_cast<float>(odd));
    }
  }
}

TEST(Codes, OfEightBitsAreSigned) {
  const std::int8_t codes[] = {-128, -1, 0, 127};
  EXPECT_EQ(element_at(codes, 0), -128);
  EXPECT_EQ(element_at(codes, 1), -1);
  EXPECT_EQ(element_at(codes, 3), 127);
}

}  // namespace
}  // namespace kvcheck::kernels::flash
