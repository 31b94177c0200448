// Products as a matrix unit adds them.
#include "kernels/simt/matrix.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace kvcheck::kernels::simt {
namespace {

constexpr int kBitsBelow = 25;  // Fraction bits of f32, and two more.
constexpr std::int16_t kLeastExponent = -133;
constexpr std::int16_t kOfZero = -10000;  // Below every other exponent, also in a sum of two.

/// Elements as the unit sees them.
template <std::size_t kCount>
struct Elements {
  double value[kCount];
  std::int16_t exponent[kCount];  ///< Of subnormals that of the least normal number.
};

double power_of_two(int exponent) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(1023 + exponent) << 52);
}

float value_of(Half format, std::uint32_t bits) {
  const std::uint32_t sign = (bits & 0x8000U) << 16;
  if (format == Half::bf16) return std::bit_cast<float>(bits << 16);
  // Field and fraction as they are, in the wider format: 2^112 makes up for its bias.
  const float size = std::bit_cast<float>((bits & 0x7fffU) << 13) * 0x1p112F;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(size) | sign);
}

// Loops of constant length without branches, which compilers turn into vectors.
#define KVCHECK_INLINE inline __attribute__((always_inline))

/// \return whether all are finite; those that are not become 0
template <std::size_t kCount>
KVCHECK_INLINE bool decode(Half format, const std::uint16_t* bits, Elements<kCount>& elements) {
  const int fraction_bits = format == Half::f16 ? 10 : 7;
  const int bias = format == Half::f16 ? 15 : 127;
  int largest = 0;
  for (std::size_t i = 0; i < kCount; ++i) {
    const int size = bits[i] & 0x7fff;
    const int field = size >> fraction_bits;
    largest = std::max(largest, field);
    const int exponent = std::max(field, 1) - bias;
    elements.exponent[i] = static_cast<std::int16_t>(size == 0 ? kOfZero : exponent);
    elements.value[i] = field <= 2 * bias ? value_of(format, bits[i]) : 0;
  }
  return largest <= 2 * bias;
}

KVCHECK_INLINE std::int16_t exponent_of(float x) {
  const std::uint32_t size = std::bit_cast<std::uint32_t>(x) & 0x7fffffffU;
  const int exponent = std::max(static_cast<int>(size >> 23), 1) - 127;
  return static_cast<std::int16_t>(size == 0 ? kOfZero : exponent);
}

/// Towards zero to f32; infinity where f32 ends.
KVCHECK_INLINE void cut_to_float(const double (&x)[8], std::array<float, 8>& y) {
  constexpr std::uint64_t kKept = ~((std::uint64_t{1} << 29) - 1);
  bool small = false;
  for (std::size_t n = 0; n < 8; ++n) {
    small |= std::fabs(x[n]) < 0x1p-126 && x[n] != 0;
    y[n] = static_cast<float>(std::bit_cast<double>(std::bit_cast<std::uint64_t>(x[n]) & kKept));
  }
  for (std::size_t n = 0; n < 8 && small; ++n) {
    if (std::fabs(x[n]) >= 0x1p-126) continue;
    y[n] = static_cast<float>(std::trunc(x[n] * 0x1p149) * 0x1p-149);
  }
}

// All columns of a row at a time, or four; compilers split these where registers are shorter.
using Shorts = std::int16_t __attribute__((vector_size(16)));
using Doubles = double __attribute__((vector_size(32), aligned(8)));
using Ints = std::int32_t __attribute__((vector_size(16)));

/// Integers nearer to zero. \pre they fit 32 bits
KVCHECK_INLINE void cut(Doubles& x) {
  x = __builtin_convertvector(__builtin_convertvector(x, Ints), Doubles);
}

/// d += a b for one row of a and of d. \pre everything is finite
KVCHECK_INLINE void add_row(const Elements<16>& a, const Elements<8> (&b)[16],
                            std::array<float, 8>& d) {
  Shorts largest;
  for (std::size_t n = 0; n < 8; ++n) largest[n] = std::max(exponent_of(d[n]), kLeastExponent);
  for (std::size_t k = 0; k < 16; ++k) {
    Shorts sum;
    std::memcpy(&sum, b[k].exponent, sizeof sum);
    sum += a.exponent[k];
    largest = sum > largest ? sum : largest;
  }
  double sums[8];
  for (std::size_t half = 0; half < 8; half += 4) {
    Doubles scale, sum;
    for (std::size_t n = 0; n < 4; ++n) {
      scale[n] = power_of_two(kBitsBelow - largest[half + n]);
      sum[n] = static_cast<double>(d[half + n]) * scale[n];
    }
    cut(sum);
    for (std::size_t k = 0; k < 16; ++k) {
      Doubles term;
      std::memcpy(&term, &b[k].value[half], sizeof term);
      term = term * a.value[k] * scale;
      cut(term);
      sum += term;
    }
    for (std::size_t n = 0; n < 4; ++n) {
      sums[half + n] = sum[n] * power_of_two(largest[half + n] - kBitsBelow);
    }
  }
  cut_to_float(sums, d);
}

/// A row times a column where something is not finite: IEEE decides, no rounding matters.
float special_sum(Half format, const MatrixProduct& product, std::size_t row, std::size_t column) {
  const auto plain = [&](std::uint16_t bits) -> double {
    if (format == Half::f16 && (bits & 0x7c00) == 0x7c00) {
      const std::uint32_t wide = (bits & 0x8000U) << 16 | 0x7f800000U | (bits & 0x3ffU) << 13;
      return std::bit_cast<float>(wide);
    }
    return value_of(format, bits);
  };
  double sum = product.d[row][column];
  for (std::size_t k = 0; k < 16; ++k) {
    sum += plain(product.a[row][k]) * plain(product.b[k][column]);
  }
  return std::isnan(sum) ? std::bit_cast<float>(0x7fffffffU) : static_cast<float>(sum);
}

bool column_is_special(Half format, const MatrixProduct& product, std::size_t column) {
  const int infinity = format == Half::f16 ? 0x7c00 : 0x7f80;
  for (std::size_t k = 0; k < 16; ++k) {
    if ((product.b[k][column] & 0x7fff) >= infinity) return true;
  }
  return false;
}

}  // namespace

__attribute__((target_clones("avx2", "default"))) void multiply_add(Half format,
                                                                    MatrixProduct& product) {
  Elements<8> b[16];
  bool b_finite = true;
  for (std::size_t k = 0; k < 16; ++k) b_finite &= decode(format, product.b[k].data(), b[k]);
  for (std::size_t m = 0; m < 16; ++m) {
    Elements<16> a;
    const bool a_finite = decode(format, product.a[m].data(), a);
    std::array<float, 8> sums = product.d[m];
    bool d_finite = true;
    for (float& sum : sums) {
      d_finite &= std::isfinite(sum);
      if (!std::isfinite(sum)) sum = 0;
    }
    add_row(a, b, sums);
    for (std::size_t n = 0; n < 8 && !(a_finite && b_finite && d_finite); ++n) {
      const bool special = !a_finite || !std::isfinite(product.d[m][n]) ||
                           (!b_finite && column_is_special(format, product, n));
      if (special) sums[n] = special_sum(format, product, m, n);
    }
    product.d[m] = sums;
  }
}

void place(int lane, const Fragments& fragments, MatrixProduct& product) {
  const auto group = static_cast<std::size_t>(lane / 4);
  const auto pair = static_cast<std::size_t>(2 * (lane % 4));
  for (std::size_t i = 0; i < 4; ++i) {
    auto& row = product.a[group + i % 2 * 8];
    const std::size_t column = pair + i / 2 * 8;
    row[column] = static_cast<std::uint16_t>(fragments.a[i]);
    row[column + 1] = static_cast<std::uint16_t>(fragments.a[i] >> 16);
    product.d[group + i / 2 * 8][pair + i % 2] = fragments.d[i];
  }
  for (std::size_t i = 0; i < 2; ++i) {
    product.b[pair + i * 8][group] = static_cast<std::uint16_t>(fragments.b[i]);
    product.b[pair + i * 8 + 1][group] = static_cast<std::uint16_t>(fragments.b[i] >> 16);
  }
}

std::array<float, 4> sums_of(int lane, const MatrixProduct& product) {
  const auto group = static_cast<std::size_t>(lane / 4);
  const auto pair = static_cast<std::size_t>(2 * (lane % 4));
  return {product.d[group][pair], product.d[group][pair + 1], product.d[group + 8][pair],
          product.d[group + 8][pair + 1]};
}

}  // namespace kvcheck::kernels::simt
