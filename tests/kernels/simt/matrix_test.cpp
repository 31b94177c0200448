// Matrix products: who holds what, and how sums are cut.
#include "kernels/simt/matrix.h"

#include <bit>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "kernels/simt/device.h"
#include "kernels/simt/random.h"

namespace kvcheck::kernels::simt {
namespace {

constexpr Half kFormats[] = {Half::f16, Half::bf16};

std::uint16_t bits_of(Half format, float x) {
  return format == Half::f16 ? device::f16_from(x).bits : device::bf16_from(x).bits;
}
double value_of(Half format, std::uint16_t bits) {
  return format == Half::f16 ? device::to_float(device::F16{bits})
                             : device::to_float(device::BF16{bits});
}

/// d + sum of x_k y_k as one element of a product; the terms behind the last pair are 0.
float dot(Half format, float d, std::initializer_list<std::pair<float, float>> pairs) {
  MatrixProduct product{};
  product.d[3][5] = d;
  std::size_t k = 0;
  for (const auto& [x, y] : pairs) {
    product.a[3][k] = bits_of(format, x);
    product.b[k][5] = bits_of(format, y);
    ++k;
  }
  multiply_add(format, product);
  return product.d[3][5];
}

// PTX ISA, figures of the fragments of mma.m16n8k16, read off for a few lanes.
TEST(Matrix, FragmentsLieWhereThePtxManualShowsThem) {
  MatrixProduct product{};
  Fragments fragments{
      {0x00020001, 0x00040003, 0x00060005, 0x00080007}, {0x00120011, 0x00140013}, {21, 22, 23, 24}};
  place(0, fragments, product);
  EXPECT_EQ(product.a[0][0], 1);
  EXPECT_EQ(product.a[0][1], 2);
  EXPECT_EQ(product.a[8][0], 3);
  EXPECT_EQ(product.a[8][1], 4);
  EXPECT_EQ(product.a[0][8], 5);
  EXPECT_EQ(product.a[0][9], 6);
  EXPECT_EQ(product.a[8][8], 7);
  EXPECT_EQ(product.a[8][9], 8);
  EXPECT_EQ(product.b[0][0], 0x11);
  EXPECT_EQ(product.b[1][0], 0x12);
  EXPECT_EQ(product.b[8][0], 0x13);
  EXPECT_EQ(product.b[9][0], 0x14);
  EXPECT_EQ(product.d[0][0], 21);
  EXPECT_EQ(product.d[0][1], 22);
  EXPECT_EQ(product.d[8][0], 23);
  EXPECT_EQ(product.d[8][1], 24);
  place(14, fragments, product);  // Group 3, the third of its four.
  EXPECT_EQ(product.a[3][4], 1);
  EXPECT_EQ(product.a[11][5], 4);
  EXPECT_EQ(product.a[3][12], 5);
  EXPECT_EQ(product.b[5][3], 0x12);
  EXPECT_EQ(product.b[12][3], 0x13);
  EXPECT_EQ(product.d[11][4], 23);
  EXPECT_EQ(sums_of(14, product), (std::array<float, 4>{21, 22, 23, 24}));
}

TEST(Matrix, LanesCoverEveryElementOnce) {
  MatrixProduct product{};
  for (int lane = 0; lane < 32; ++lane) {
    const auto word = static_cast<std::uint32_t>(lane * 8 + 1);
    Fragments fragments;
    for (std::uint32_t i = 0; i < 4; ++i) {
      fragments.a[i] = (word + 2 * i) | (word + 2 * i + 1) << 16;
      fragments.d[i] = static_cast<float>(lane * 4 + 1) + static_cast<float>(i);
    }
    for (std::uint32_t i = 0; i < 2; ++i) {
      fragments.b[i] = (word + 2 * i) | (word + 2 * i + 1) << 16;
    }
    place(lane, fragments, product);
  }
  std::uint64_t a = 0, b = 0;
  double d = 0;
  for (std::size_t i = 0; i < 16; ++i) {
    for (const std::uint16_t x : product.a[i]) a += x;
    for (const std::uint16_t x : product.b[i]) b += x;
    for (const float x : product.d[i]) d += x;
  }
  EXPECT_EQ(a, 256U * 257 / 2);
  EXPECT_EQ(d, 128.0 * 129 / 2);
  EXPECT_EQ(b, 32U * 31 / 2 * 8 * 4 + 32 * (1 + 2 + 3 + 4));
}

TEST(Matrix, SmallIntegersAreExact) {
  for (const Half format : kFormats) {
    MatrixProduct product;
    for (std::size_t m = 0; m < 16; ++m) {
      for (std::size_t k = 0; k < 16; ++k) {
        product.a[m][k] = bits_of(format, static_cast<float>(static_cast<int>(m * k % 11) - 5));
      }
      for (std::size_t n = 0; n < 8; ++n) {
        product.b[m][n] = bits_of(format, static_cast<float>(static_cast<int>(m * n % 7) - 3));
        product.d[m][n] = static_cast<float>(m) - static_cast<float>(n);
      }
    }
    multiply_add(format, product);
    for (int m = 0; m < 16; ++m) {
      for (int n = 0; n < 8; ++n) {
        int sum = m - n;
        for (int k = 0; k < 16; ++k) sum += (m * k % 11 - 5) * (k * n % 7 - 3);
        EXPECT_EQ(product.d[static_cast<std::size_t>(m)][static_cast<std::size_t>(n)], sum);
      }
    }
  }
}

TEST(Matrix, TermsAndSumAreCutTowardsZero) {
  for (const Half format : kFormats) {
    // 25 bits below the largest term count, and the sum is cut: nearest would give 1.
    EXPECT_EQ(dot(format, 1, {{-0x1p-12F, 0x1p-13F}}), 1 - 0x1p-24F);
    // One bit further down nothing counts, however many there are.
    EXPECT_EQ(dot(format, 1, {{-0x1p-13F, 0x1p-13F}, {-0x1p-13F, 0x1p-13F}}), 1);
    // Cut, not rounded: 1 + 1.5 * 2^-23 is nearer to 1 + 2^-22.
    EXPECT_EQ(dot(format, 1, {{0x1.8p-12F, 0x1p-11F}}), 1 + 0x1p-23F);
    EXPECT_EQ(dot(format, -1, {{-0x1.8p-12F, 0x1p-11F}}), -1 - 0x1p-23F);
    // What cancels leaves what was kept.
    EXPECT_EQ(dot(format, 1, {{0x1p-12F, 0x1p-13F}, {-1, 1}}), 0x1p-25F);
    // One sum of all 16, so no order among them: the large ones cancel first.
    EXPECT_EQ(dot(format, 0, {{0x1p12F, 0x1p12F}, {1, 1}, {-0x1p12F, 0x1p12F}}), 1);
    // Products count by their factors' exponents: 2.25 is 2^0 here, so 2^-25 is kept.
    EXPECT_EQ(dot(format, 0, {{1.5F, 1.5F}, {0x1p-12F, 0x1p-13F}, {-1.5F, 1.5F}}), 0x1p-25F);
    EXPECT_EQ(dot(format, 2.25F, {{0x1p-12F, 0x1p-13F}, {-1.5F, 1.5F}}), 0);
  }
}

TEST(Matrix, SumsBelowTheNormalNumbersAndAboveTheLargest) {
  EXPECT_EQ(dot(Half::bf16, 0, {{0x1p-70F, 0x1.8p-70F}}), 0x1.8p-140F);
  EXPECT_EQ(dot(Half::bf16, 0, {{0x1p-75F, 0x1.8p-74F}}), 0x1p-149F);
  EXPECT_EQ(dot(Half::bf16, 0, {{0x1p-75F, 0x1p-75F}}), 0);
  EXPECT_EQ(dot(Half::bf16, 0x1p-149F, {}), 0x1p-149F);
  EXPECT_EQ(dot(Half::f16, 0, {{0x1p-24F, 0x1p-24F}}), 0x1p-48F);
  EXPECT_EQ(dot(Half::bf16, 0, {{0x1p100F, -0x1p100F}}), -std::numeric_limits<float>::infinity());
}

TEST(Matrix, WhatIsNoNumberStaysInItsElements) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const Half format : kFormats) {
    EXPECT_EQ(dot(format, 1, {{infinity, 2}}), infinity);
    EXPECT_EQ(dot(format, 1, {{2, -infinity}}), -infinity);
    EXPECT_EQ(dot(format, infinity, {{2, 3}}), infinity);
    for (const float x :
         {dot(format, 1, {{infinity, 0}}), dot(format, nan, {{1, 1}}), dot(format, 1, {{nan, 0}}),
          dot(format, 1, {{0, nan}}), dot(format, infinity, {{-infinity, 1}})}) {
      EXPECT_EQ(std::bit_cast<std::uint32_t>(x), 0x7fffffffU);
    }
    MatrixProduct product{};
    product.d[1][1] = 1;
    product.a[3][2] = bits_of(format, nan);
    product.b[2][5] = bits_of(format, infinity);
    multiply_add(format, product);
    for (std::size_t m = 0; m < 16; ++m) {
      for (std::size_t n = 0; n < 8; ++n) {
        const float expected = m == 1 && n == 1 ? 1.0F : 0.0F;
        const bool number = m != 3 && n != 5;
        EXPECT_EQ(std::isnan(product.d[m][n]), !number);
        if (number) {
          EXPECT_EQ(product.d[m][n], expected);
        }
      }
    }
  }
}

// The rounding model in long double arithmetic, term by term.
float declared(Half format, const MatrixProduct& product, std::size_t m, std::size_t n) {
  const auto exponent = [&](double x) {
    if (x == 0) return -10000;
    return std::max(std::ilogb(x), format == Half::f16 ? -14 : -126);
  };
  const double d = product.d[m][n];
  int largest = std::max(-133, d == 0 ? -10000 : std::max(std::ilogb(d), -126));
  for (std::size_t k = 0; k < 16; ++k) {
    largest = std::max(largest, exponent(value_of(format, product.a[m][k])) +
                                    exponent(value_of(format, product.b[k][n])));
  }
  const auto steps = [&](long double x) { return std::trunc(std::ldexp(x, 25 - largest)); };
  long double sum = steps(d);
  for (std::size_t k = 0; k < 16; ++k) {
    sum += steps(static_cast<long double>(value_of(format, product.a[m][k])) *
                 value_of(format, product.b[k][n]));
  }
  const long double exact = std::ldexp(sum, largest - 25);
  if (exact == 0) return 0;
  const int last = std::max(std::ilogb(exact) - 23, -149);
  return static_cast<float>(std::ldexp(std::trunc(std::ldexp(exact, -last)), last));
}

TEST(Matrix, AnyNumbersFollowTheDeclaredModel) {
  Random random(7);
  for (const Half format : kFormats) {
    for (int trial = 0; trial < 200; ++trial) {
      // Exponents from narrow to the whole range, so that both cutting and cancelling occur.
      const std::uint32_t spread = 1 + random.below(format == Half::f16 ? 30 : 120);
      const auto draw = [&] {
        const int exponent = static_cast<int>(random.below(spread)) - static_cast<int>(spread / 2);
        const float size = std::ldexp(1 + static_cast<float>(random.below(1024)) / 1024, exponent);
        return random.below(2) == 0 ? size : -size;
      };
      MatrixProduct product;
      for (std::size_t m = 0; m < 16; ++m) {
        for (std::uint16_t& x : product.a[m])
          x = bits_of(format, random.below(9) == 0 ? 0 : draw());
        for (std::uint16_t& x : product.b[m]) x = bits_of(format, draw());
        for (float& x : product.d[m]) x = random.below(5) == 0 ? 0 : draw() * draw();
      }
      MatrixProduct after = product;
      multiply_add(format, after);
      for (std::size_t m = 0; m < 16; ++m) {
        for (std::size_t n = 0; n < 8; ++n) {
          ASSERT_EQ(after.d[m][n], declared(format, product, m, n))
              << trial << " " << m << " " << n;
        }
      }
    }
  }
}

}  // namespace
}  // namespace kvcheck::kernels::simt
