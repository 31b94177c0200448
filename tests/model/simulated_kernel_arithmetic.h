// Arithmetics of simulated row kernels: native where that is fast, any number of bits elsewhere.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "model/element_type.h"

namespace kvcheck::model {

/// x to so many bits, ties to even; exact for 0 bits. `least` is the exponent of the smallest
/// subnormal number.
struct Narrowing {
  int bits = 0;
  int least = -1100;

  double operator()(double x) const {
    if (bits == 0 || x == 0 || !std::isfinite(x)) return x;
    int exponent = 0;
    std::frexp(x, &exponent);
    const double quantum = std::ldexp(1.0, std::max(exponent - bits, least));
    return std::nearbyint(x / quantum) * quantum;
  }
};

inline Narrowing narrowing(ElementType type) {
  switch (type) {
    case ElementType::f32:
      return {24, -149};
    case ElementType::f16:
      return {11, -24};
    case ElementType::bf16:
      return {8, -133};
    case ElementType::f64:
      break;
  }
  return {};
}

/// Native float or double.
template <class Float>
struct Native {
  using T = Float;
  T r(T x) const { return x; }
  T product(T a, T b) const { return a * b; }
  /// In f32 by way of double, whose own rounding is 2^-29 of the final one.
  T fma(T a, T b, T c) const {
    if constexpr (sizeof(T) == 8) return std::fma(a, b, c);
    return static_cast<T>(static_cast<double>(a) * static_cast<double>(b) + static_cast<double>(c));
  }
};

/// f16 or bf16 in float: every operation is rounded to `Bits`, which double rounding does not
/// change, since 24 >= 2 * Bits + 2 (Figueroa 1995). Splitting after Veltkamp; no overflow.
template <int Bits, int LeastNormal>
struct Half {
  using T = float;
  T r(T x) const {
    constexpr T kSplit = (1 << (24 - Bits)) + 1;
    const T wide = x * kSplit;
    const T normal = wide - (wide - x);
    if constexpr (LeastNormal < -100) return normal;
    // Adding makes the spacing of the sum that of the subnormal numbers.
    const T shift = std::ldexp(T(0.75), LeastNormal - Bits + 25);
    const T subnormal = (x + shift) - shift;
    return std::abs(x) < std::ldexp(T(1), LeastNormal) ? subnormal : normal;
  }
  T product(T a, T b) const { return r(a * b); }
  T fma(T a, T b, T c) const {
    return r(static_cast<float>(static_cast<double>(a) * static_cast<double>(b) +
                                static_cast<double>(c)));
  }
};

using F32 = Native<float>;
using F64 = Native<double>;
using F16 = Half<11, -14>;
using Bf16 = Half<8, -126>;

/// Any precision up to 26 bits, to nearest or truncating, products apart. No subnormal numbers.
struct Bits {
  using T = double;
  int bits = 24;
  int product_bits = 24;
  bool truncates = false;

  T at(T x, int width) const {
    if (x == 0 || !std::isfinite(x)) return x;
    int exponent = 0;
    std::frexp(x, &exponent);
    const double quantum = std::ldexp(1.0, exponent - width);
    return (truncates ? std::trunc(x / quantum) : std::nearbyint(x / quantum)) * quantum;
  }
  T r(T x) const { return at(x, bits); }
  T product(T a, T b) const { return at(a * b, product_bits); }
  T fma(T a, T b, T c) const { return r(std::fma(a, b, c)); }
};

}  // namespace kvcheck::model
