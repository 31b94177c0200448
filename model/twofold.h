// Twofold numbers: unevaluated sums of two doubles, about 104 bits, far faster than any number of
// more bits.
//
// Source: Dekker, A floating-point technique for extending the available precision, Numer. Math.
// 18, 1971; error bounds in Joldes, Muller, Popescu, Tight and rigorous error bounds for basic
// building blocks of double-word arithmetic, ACM TOMS 44(2), 2017.
#pragma once

#include <cmath>

namespace kvcheck::model {

/// high + low, where high is the double nearest to the sum. Operations are right to 2^-100 of
/// their result (of the operands' sizes where signs differ), as long as no part of a product or
/// quotient is subnormal or overflows: see in_range().
struct Twofold {
  double high = 0;
  double low = 0;

  Twofold() = default;
  Twofold(double number) : high(number) {}
  Twofold(double high_part, double low_part) : high(high_part), low(low_part) {}
  explicit operator double() const { return high; }

  /// Whether products of two such numbers, and quotients of those, keep all their bits.
  static bool in_range(double number) {
    const double size = std::abs(number);
    return number == 0 || (size > 0x1p-200 && size < 0x1p200);
  }
};

/// a + b without any error.
inline Twofold sum_of(double a, double b) {
  const double sum = a + b;
  const double rest = sum - a;
  return {sum, (a - (sum - rest)) + (b - rest)};
}

/// a * b without any error.
inline Twofold product_of(double a, double b) {
  const double product = a * b;
  return {product, std::fma(a, b, -product)};
}

inline Twofold operator+(const Twofold& a, const Twofold& b) {
  const Twofold sum = sum_of(a.high, b.high);
  const Twofold rest = sum_of(a.low, b.low);
  const Twofold nearer = sum_of(sum.high, sum.low + rest.high);
  return sum_of(nearer.high, nearer.low + rest.low);
}

inline Twofold operator*(const Twofold& a, const Twofold& b) {
  const Twofold product = product_of(a.high, b.high);
  return sum_of(product.high, product.low + (a.high * b.low + a.low * b.high));
}

inline Twofold operator/(const Twofold& a, const Twofold& b) {
  const double first = a.high / b.high;
  const double rest = std::fma(-first, b.high, a.high) + (a.low - first * b.low);
  return sum_of(first, rest / b.high);
}

/// \pre a.high > 0
inline Twofold sqrt(const Twofold& a) {
  const double first = std::sqrt(a.high);
  const double rest = std::fma(-first, first, a.high) + a.low;
  return sum_of(first, rest / (2 * first));
}

}  // namespace kvcheck::model
