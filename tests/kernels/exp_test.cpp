// exp of the tile kernels: its error, what it flushes, and that all instruction sets agree.
//
// KVCHECK_EXP_ALL=1 takes every float that is not above 0 (2^31 of them, some minutes for each
// instruction set) in place of every 4,093rd.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>

#include <gtest/gtest.h>

#include "kernels/cpu/flash/cpu_flash.h"
#include "kernels/cpu/flash/kernels.h"

namespace kvcheck::kernels::flash {
namespace {

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

struct Worst {
  double relative = 0, ulps = 0;
  float at = 0;
  std::int64_t rounded = 0, all = 0;  ///< Results that are the nearest f32, of all.
};

void judge(float x, float result, Worst& worst) {
  const double exact = std::exp(static_cast<double>(x));
  const double off = std::abs(static_cast<double>(result) - exact);
  worst.ulps = std::max(worst.ulps, off / std::ldexp(1.0, std::ilogb(exact) - 23));
  if (off / exact > worst.relative) worst = {off / exact, worst.ulps, x, worst.rounded, worst.all};
  worst.rounded += result == static_cast<float>(exact) ? 1 : 0;
  ++worst.all;
}

TEST(Exp, IsWithinTheErrorThatTheTargetDeclares) {
  const double declared = make_cpu_flash()->capabilities().arithmetic.exp_error;
  const Kernels& widest = *kernels_here()[0];
  Worst worst;
  for (std::uint32_t bits = kMinusZero; float_of(bits) >= kLeast; bits += stride()) {
    judge(float_of(bits), widest.exp(float_of(bits)), worst);
  }
  std::printf(
      "%lld floats: relative error %.4e = 2^%.3f at %a, %.4f ulp, %.4f %% are the nearest\n",
      static_cast<long long>(worst.all), worst.relative, std::log2(worst.relative),
      static_cast<double>(worst.at), worst.ulps,
      100 * static_cast<double>(worst.rounded) / static_cast<double>(worst.all));
  EXPECT_LE(worst.relative, declared);
  EXPECT_GE(worst.relative, declared / 4) << "what is declared says too little";
}

TEST(Exp, IsTheSameForEveryInstructionSet) {
  const Kernels& widest = *kernels_here()[0];
  for (const Kernels* kernels : kernels_here()) {
    if (kernels == &widest) continue;
    for (std::uint32_t bits = kMinusZero; float_of(bits) >= kLeast; bits += stride()) {
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
  for (const Kernels* kernels : kernels_here()) {
    EXPECT_GE(kernels->exp(kLeast), 0x1p-126f) << kernels->isa;
    for (std::uint32_t bits = bits_of(below); bits <= kMinusInfinity;) {
      ASSERT_EQ(bits_of(kernels->exp(float_of(bits))), 0u) << kernels->isa << ' ' << float_of(bits);
      if (bits == kMinusInfinity) break;
      bits = kMinusInfinity - bits < stride() ? kMinusInfinity : bits + stride();
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
