// Conversions and functions of the vocabulary, against their definitions.
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include <gtest/gtest.h>

#include "kernels/simt/device.h"

namespace kvcheck::kernels::device {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::uint32_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }

TEST(Numbers, F16IsWhatItsBitsSay) {
  for (std::uint32_t size = 0; size < 0x7c00; ++size) {
    const int field = static_cast<int>(size >> 10), fraction = static_cast<int>(size & 0x3ff);
    const double expected =
        field == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, field - 25);
    EXPECT_EQ(to_float(F16{static_cast<std::uint16_t>(size)}), expected);
    EXPECT_EQ(to_float(F16{static_cast<std::uint16_t>(size | 0x8000)}), -expected);
  }
  EXPECT_EQ(bits(to_float(F16{0x8000})), 0x80000000U);
  EXPECT_EQ(to_float(F16{0x7c00}), kInfinity);
  EXPECT_EQ(to_float(F16{0xfc00}), -kInfinity);
  EXPECT_TRUE(std::isnan(to_float(F16{0x7c01})));
}

// Every number, every tie between neighbours and what lies just beside it.
template <class E>
void expect_nearest(std::uint16_t last, E (*narrow)(float)) {
  const auto converted = [&](float x) { return static_cast<int>(narrow(x).bits); };
  for (std::uint16_t size = 0; size < last; ++size) {
    const float low = to_float(E{size}), high = to_float(E{static_cast<std::uint16_t>(size + 1)});
    const auto middle = static_cast<float>((static_cast<double>(low) + high) / 2);
    ASSERT_EQ(converted(low), size);
    ASSERT_EQ(converted(middle), size % 2 == 0 ? size : size + 1) << size;
    ASSERT_EQ(converted(std::nextafter(middle, 0.0F)), size);
    ASSERT_EQ(converted(std::nextafter(middle, kInfinity)), size + 1);
    ASSERT_EQ(converted(-middle), 0x8000 | (size % 2 == 0 ? size : size + 1));
  }
}

TEST(Numbers, NarrowingIsToNearestTiesToEven) {
  expect_nearest<F16>(0x7bff, &f16_from);
  expect_nearest<BF16>(0x7f7f, &bf16_from);
}

TEST(Numbers, NarrowingBeyondTheLargestAndOfNoNumbers) {
  EXPECT_EQ(f16_from(65519.996F).bits, 0x7bff);
  EXPECT_EQ(f16_from(65520.0F).bits, 0x7c00);
  EXPECT_EQ(f16_from(-1e30F).bits, 0xfc00);
  EXPECT_EQ(f16_from(kInfinity).bits, 0x7c00);
  EXPECT_EQ(f16_from(-0.0F).bits, 0x8000);
  EXPECT_EQ(bf16_from(std::numeric_limits<float>::max()).bits, 0x7f80);
  EXPECT_EQ(bf16_from(-kInfinity).bits, 0xff80);
  for (const float nan : {kNan, -kNan, std::bit_cast<float>(0x7f800001U)}) {
    EXPECT_EQ(f16_from(nan).bits, 0x7fff);
    EXPECT_EQ(bf16_from(nan).bits, 0x7fff);
  }
}

TEST(Numbers, WordsHoldTwo) {
  const unsigned word = pack<F16>(1.0F, -2.0F);
  EXPECT_EQ(word, 0xc0003c00U);
  const Pair pair = unpack<F16>(word);
  EXPECT_EQ(pair.low, 1.0F);
  EXPECT_EQ(pair.high, -2.0F);
  EXPECT_EQ(pack<BF16>(1.0F, -2.0F), 0xc0003f80U);
  EXPECT_EQ(unpack<BF16>(0xc0003f80U).high, -2.0F);
}

TEST(Numbers, PowersOfTwo) {
  EXPECT_EQ(exp2_approx(0.0F), 1.0F);
  EXPECT_EQ(exp2_approx(-3.0F), 0.125F);
  EXPECT_EQ(exp2_approx(-126.0F), 0x1p-126F);
  EXPECT_EQ(exp2_approx(-126.0001F), 0.0F);
  EXPECT_EQ(exp2_approx(128.0F), kInfinity);
  EXPECT_EQ(exp2_approx(-kInfinity), 0.0F);
  EXPECT_TRUE(std::isnan(exp2_approx(kNan)));
  EXPECT_EQ(exp2_approx(0.5F), 0x1.6a09e6p0F);  // sqrt(2), correctly rounded.
}

TEST(Numbers, LargerAndSmallerPreferNumbersAndKnowSignsOfZero) {
  EXPECT_EQ(larger(1.0F, 2.0F), 2.0F);
  EXPECT_EQ(smaller(1.0F, 2.0F), 1.0F);
  EXPECT_EQ(larger(kNan, 1.0F), 1.0F);
  EXPECT_EQ(larger(1.0F, kNan), 1.0F);
  EXPECT_EQ(smaller(kNan, 1.0F), 1.0F);
  EXPECT_EQ(smaller(1.0F, kNan), 1.0F);
  EXPECT_TRUE(std::isnan(larger(kNan, kNan)));
  for (const auto& [a, b] : {std::pair{0.0F, -0.0F}, {-0.0F, 0.0F}}) {
    EXPECT_EQ(bits(larger(a, b)), 0U);
    EXPECT_EQ(bits(smaller(a, b)), 0x80000000U);
  }
}

TEST(Numbers, FusedRoundsOnce) {
  EXPECT_EQ(fused(1 + 0x1p-12F, 1 + 0x1p-12F, -1 - 0x1p-11F), 0x1p-24F);
  EXPECT_EQ(tanh_of(0.5F), 0x1.d9353ep-2F);  // 0.46211715726...
  EXPECT_EQ(tanh_of(-kInfinity), -1.0F);
}

}  // namespace
}  // namespace kvcheck::kernels::device
