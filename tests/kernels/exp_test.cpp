// exp of the tile kernels: its error, what it flushes, and that all instruction sets agree.
//
// KVCHECK_EXP_ALL=1 takes every float that is not above 0 (2^31 of them, some minutes) in place of
// every 4,093rd.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>

#include <gtest/gtest.h>

#include "kernels/cpu/flash/cpu_flash.h"
#include "kernels/cpu/flash/elements.h"
#include "kernels/cpu/flash/kernels.h"

namespace kvcheck::kernels::flash {
namespace {

// Eight lanes at a time where there is no instruction set: the table's entry takes a single one.
#include "kernels/cpu/flash/lanes_portable.inc"
//
#include "kernels/cpu/flash/exp.inc"

constexpr std::uint32_t kMinusZero = 0x80000000u, kMinusInfinity = 0xff800000u;
/// Below this, results are flushed: ln(2^-126) = -87.336544750...
constexpr float kLeast = -0x1.5d589ep6f;

float float_of(std::uint32_t bits) {
  float value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

std::uint32_t bits_of(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

/// Steps through the floats from -0 down to -infinity.
std::uint32_t stride() { return std::getenv("KVCHECK_EXP_ALL") != nullptr ? 1 : 4093; }

/// Calls judge(first, lanes) with eight floats from `from` down to `to`; the last ones are
/// repeated.
template <class Judge>
void each_eight(std::uint32_t from, std::uint32_t to, const Judge& judge) {
  std::array<float, 8> x{};
  for (std::uint64_t bits = from; bits <= to;) {
    for (float& lane : x) {
      lane = float_of(static_cast<std::uint32_t>(std::min<std::uint64_t>(bits, to)));
      bits += stride();
    }
    judge(x);
  }
}

std::array<float, 8> portable(const std::array<float, 8>& x) {
  std::array<float, 8> result{};
  Lanes::store(exp_of(Lanes::load(x.data())), result.data());
  return result;
}

TEST(Exp, IsWithinTheErrorThatTheTargetDeclares) {
  const double declared = make_cpu_flash()->capabilities().arithmetic.exp_error;
  const Kernels& widest = *kernels_here()[0];
  double worst = 0, ulps = 0;
  float at = 0;
  std::int64_t nearest = 0, all = 0;
  for (std::uint32_t bits = kMinusZero; float_of(bits) >= kLeast; bits += stride()) {
    const float x = float_of(bits), result = widest.exp(x);
    const double exact = std::exp(static_cast<double>(x));
    const double off = std::abs(static_cast<double>(result) - exact);
    if (off > worst * exact) {
      worst = off / exact;
      at = x;
    }
    nearest += result == static_cast<float>(exact) ? 1 : 0;
    ++all;
    if (off > 0x1p-25 * exact) ulps = std::max(ulps, off / std::ldexp(1, std::ilogb(exact) - 23));
  }
  std::printf(
      "%lld floats: relative error %.4e = 2^%.3f at %a, %.4f ulp, %.3f %% are the nearest\n",
      static_cast<long long>(all), worst, std::log2(worst), static_cast<double>(at), ulps,
      100 * static_cast<double>(nearest) / static_cast<double>(all));
  EXPECT_LE(worst, declared);
  EXPECT_GE(worst, declared / 4) << "what is declared says too little";
}

TEST(Exp, IsTheSameForEveryInstructionSet) {
  const Kernels& widest = *kernels_here()[0];
  each_eight(kMinusZero, bits_of(kLeast), [&](const std::array<float, 8>& x) {
    const std::array<float, 8> other = portable(x);
    for (std::size_t i = 0; i < 8; ++i) {
      ASSERT_EQ(bits_of(widest.exp(x[i])), bits_of(other[i])) << x[i];
    }
  });
  for (const Kernels* kernels : kernels_here()) {
    // All of those that are fast; of the last, every so many-th.
    const std::uint32_t step = kernels == kernels_here().back() ? 4093 : stride();
    for (std::uint32_t bits = kMinusZero; float_of(bits) >= kLeast; bits += step) {
      const float x = float_of(bits);
      ASSERT_EQ(bits_of(kernels->exp(x)), bits_of(widest.exp(x))) << kernels->isa << ' ' << x;
    }
  }
}

TEST(Exp, FlushesExactlyWhatIsBelowTheLeastNormalNumber) {
  ASSERT_TRUE(make_cpu_flash()->capabilities().arithmetic.exp_flushes);
  const float below = std::nextafter(kLeast, -100.0f);
  EXPECT_GE(std::exp(static_cast<double>(kLeast)), 0x1p-126);
  EXPECT_LT(std::exp(static_cast<double>(below)), 0x1p-126);
  each_eight(bits_of(below), kMinusInfinity, [&](const std::array<float, 8>& x) {
    const std::array<float, 8> other = portable(x);
    for (std::size_t i = 0; i < 8; ++i) ASSERT_EQ(bits_of(other[i]), 0u) << x[i];
  });
  for (const Kernels* kernels : kernels_here()) {
    EXPECT_GE(kernels->exp(kLeast), 0x1p-126f) << kernels->isa;
    EXPECT_EQ(bits_of(kernels->exp(-std::numeric_limits<float>::infinity())), 0u);
    const std::uint32_t step = kernels == kernels_here().back() ? 4093 : stride();
    for (std::uint64_t bits = bits_of(below); bits <= kMinusInfinity; bits += step) {
      const float x = float_of(static_cast<std::uint32_t>(bits));
      ASSERT_EQ(bits_of(kernels->exp(x)), 0u) << kernels->isa << ' ' << x;
    }
  }
}

TEST(Exp, KnowsZeroSubnormalsAndNaN) {
  for (const Kernels* kernels : kernels_here()) {
    EXPECT_EQ(bits_of(kernels->exp(0.0f)), 0x3f800000u) << kernels->isa;
    EXPECT_EQ(bits_of(kernels->exp(-0.0f)), 0x3f800000u);
    EXPECT_EQ(kernels->exp(-std::numeric_limits<float>::denorm_min()), 1);
    EXPECT_EQ(kernels->exp(-std::numeric_limits<float>::min()), 1);
    EXPECT_EQ(kernels->exp(-0x1p-26f), 1);
    EXPECT_TRUE(std::isnan(kernels->exp(std::numeric_limits<float>::quiet_NaN())));
    EXPECT_TRUE(std::isnan(kernels->exp(-std::numeric_limits<float>::quiet_NaN())));
  }
}

TEST(Exp, OfLogarithmsOfPowersOfTwo) {
  // x = the f32 nearest to -n ln 2: exp(x) = 2^-n within the error of x and of exp.
  for (int n = 1; n <= 125; ++n) {
    const auto x = static_cast<float>(-n * std::log(2.0));
    EXPECT_NEAR(std::ldexp(kernels_here()[0]->exp(x), n), 1, 0x1p-18) << n;
  }
}

}  // namespace
}  // namespace kvcheck::kernels::flash
