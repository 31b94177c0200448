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
constexpr std::int16_t kOfZero = -10000;

/// One element as the unit sees it.
struct Element {
  double value;           ///< 0 where it is not finite.
  std::int16_t exponent;  ///< Of the leading bit, of subnormals that of the least normal number.
  bool finite;
};

Element element_of(Half format, std::uint16_t bits) {
  const int fraction_bits = format == Half::f16 ? 10 : 7;
  const int bias = format == Half::f16 ? 15 : 127;
  const int field = (bits & 0x7fff) >> fraction_bits;
  const int fraction = bits & ((1 << fraction_bits) - 1);
  if (field == 2 * bias + 1) return {0, kOfZero, false};
  if (field == 0 && fraction == 0) return {0, kOfZero, true};
  const int exponent = std::max(field, 1) - bias;
  const int significand = fraction | (field != 0 ? 1 << fraction_bits : 0);
  const double scale =
      std::bit_cast<double>(static_cast<std::uint64_t>(1023 + exponent - fraction_bits) << 52);
  const double size = significand * scale;
  return {(bits & 0x8000) != 0 ? -size : size, static_cast<std::int16_t>(exponent), true};
}

/// For elements that are not finite, which element_of() leaves out.
double plain_value(Half format, std::uint16_t bits) {
  const Element element = element_of(format, bits);
  if (element.finite) return element.value;
  const int fraction_bits = format == Half::f16 ? 10 : 7;
  if ((bits & ((1 << fraction_bits) - 1)) != 0) return std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  return (bits & 0x8000) != 0 ? -infinity : infinity;
}

std::int16_t exponent_of(float x) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x) & 0x7fffffffU;
  if (bits == 0) return kOfZero;
  return static_cast<std::int16_t>(std::max<int>(static_cast<int>(bits >> 23), 1) - 127);
}

double power_of_two(int exponent) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(1023 + exponent) << 52);
}

float cut_to_float(double x) {
  if (std::fabs(x) >= 0x1p128) return static_cast<float>(x);  // Infinity.
  if (std::fabs(x) < 0x1p-126) {
    return static_cast<float>(std::trunc(x * 0x1p149) * 0x1p-149);
  }
  constexpr std::uint64_t kKept = ~((std::uint64_t{1} << 29) - 1);
  return static_cast<float>(std::bit_cast<double>(std::bit_cast<std::uint64_t>(x) & kKept));
}

/// A row times a column where something is not finite: IEEE decides, no rounding matters.
float special_sum(Half format, const MatrixProduct& product, std::size_t row, std::size_t column) {
  double sum = product.d[row][column];
  for (std::size_t k = 0; k < 16; ++k) {
    sum += plain_value(format, product.a[row][k]) * plain_value(format, product.b[k][column]);
  }
  return std::isnan(sum) ? std::bit_cast<float>(0x7fffffffU) : static_cast<float>(sum);
}

struct Columns {
  double value[16][8];
  std::int16_t exponent[16][8];
  bool finite[8];
};

Columns columns_of(Half format, const MatrixProduct& product) {
  Columns columns;
  std::fill(std::begin(columns.finite), std::end(columns.finite), true);
  for (std::size_t k = 0; k < 16; ++k) {
    for (std::size_t n = 0; n < 8; ++n) {
      const Element element = element_of(format, product.b[k][n]);
      columns.value[k][n] = element.value;
      columns.exponent[k][n] = element.exponent;
      columns.finite[n] &= element.finite;
    }
  }
  return columns;
}

/// Loops of constant length that compilers turn into vectors.
void add_row(const double (&value)[16], const std::int16_t (&exponent)[16], const Columns& b,
             std::array<float, 8>& d) {
  std::int16_t largest[8];
  for (std::size_t n = 0; n < 8; ++n) largest[n] = std::max(exponent_of(d[n]), kLeastExponent);
  for (std::size_t k = 0; k < 16; ++k) {
    for (std::size_t n = 0; n < 8; ++n) {
      const std::int16_t sum = static_cast<std::int16_t>(exponent[k] + b.exponent[k][n]);
      largest[n] = std::max(largest[n], sum);
    }
  }
  double scale[8], sum[8];
  for (std::size_t n = 0; n < 8; ++n) {
    scale[n] = power_of_two(kBitsBelow - largest[n]);
    sum[n] = static_cast<std::int32_t>(static_cast<double>(d[n]) * scale[n]);
  }
  for (std::size_t k = 0; k < 16; ++k) {
    for (std::size_t n = 0; n < 8; ++n) {
      sum[n] += static_cast<std::int32_t>(value[k] * b.value[k][n] * scale[n]);
    }
  }
  for (std::size_t n = 0; n < 8; ++n) {
    d[n] = cut_to_float(sum[n] * power_of_two(largest[n] - kBitsBelow));
  }
}

}  // namespace

void multiply_add(Half format, MatrixProduct& product) {
  const Columns columns = columns_of(format, product);
  for (std::size_t m = 0; m < 16; ++m) {
    double value[16];
    std::int16_t exponent[16];
    bool finite = true;
    for (std::size_t k = 0; k < 16; ++k) {
      const Element element = element_of(format, product.a[m][k]);
      value[k] = element.value;
      exponent[k] = element.exponent;
      finite &= element.finite;
    }
    std::array<float, 8> sums = product.d[m];
    for (float& sum : sums) {
      if (!std::isfinite(sum)) sum = 0;
    }
    add_row(value, exponent, columns, sums);
    for (std::size_t n = 0; n < 8; ++n) {
      if (!finite || !columns.finite[n] || !std::isfinite(product.d[m][n])) {
        sums[n] = special_sum(format, product, m, n);
      }
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
