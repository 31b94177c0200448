// The binary formats of the element types, converted in integer arithmetic, so that no rounding
// mode or flush-to-zero setting of the process can change a value.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "model/element_type.h"
#include "model/wide_loops.h"

namespace kvcheck::model::formats {

inline constexpr int kDoubleFraction = 52;
inline constexpr int kDoubleBias = 1023;
inline constexpr std::uint64_t kDoubleFractionMask = (std::uint64_t{1} << kDoubleFraction) - 1;

/// A binary interchange format: `precision` significant bits with the hidden one, and the
/// exponents of its normal numbers.
struct Format {
  int precision;
  int min_exponent;
  int max_exponent;
  std::size_t bytes;

  constexpr int fraction_bits() const { return precision - 1; }
  /// Pattern of +infinity; every larger pattern without sign is a NaN.
  constexpr std::uint64_t infinity() const {
    return static_cast<std::uint64_t>(max_exponent - min_exponent + 2) << fraction_bits();
  }
  constexpr int sign_shift() const { return static_cast<int>(bytes) * 8 - 1; }
};

inline constexpr Format kF32{24, -126, 127, 4};
inline constexpr Format kF16{11, -14, 15, 2};
inline constexpr Format kBf16{8, -126, 127, 2};
inline constexpr Format kF64{53, -1022, 1023, 8};

constexpr const Format& format_of(ElementType type) {
  switch (type) {
    case ElementType::f16:
      return kF16;
    case ElementType::bf16:
      return kBf16;
    case ElementType::f64:
      return kF64;
    case ElementType::f32:
      break;
  }
  return kF32;
}

/// Magnitude pattern of a NaN: the leading payload bits, and never the pattern of infinity.
template <const Format& format>
std::uint64_t encode_nan(std::uint64_t fraction) {
  const std::uint64_t payload = fraction >> (kDoubleFraction - format.fraction_bits());
  const std::uint64_t quiet = std::uint64_t{1} << (format.fraction_bits() - 1);
  return format.infinity() | (payload != 0 ? payload : quiet);
}

/// Magnitude pattern of the value of `format` nearest to a finite double.
template <const Format& format>
std::uint64_t encode_finite(int exponent, std::uint64_t fraction) {
  const int below_normal = exponent < format.min_exponent ? format.min_exponent - exponent : 0;
  const int dropped = kDoubleFraction - format.fraction_bits() + below_normal;
  // From here on even the largest significand is under half of the least subnormal number.
  if (dropped > kDoubleFraction + 1) return 0;
  const std::uint64_t significand = (std::uint64_t{1} << kDoubleFraction) | fraction;
  std::uint64_t kept = significand >> dropped;
  if (dropped > 0) {
    const std::uint64_t rest = significand & ((std::uint64_t{1} << dropped) - 1);
    const std::uint64_t half = std::uint64_t{1} << (dropped - 1);
    if (rest > half || (rest == half && (kept & 1) != 0)) ++kept;
  }
  // The hidden bit in `kept` counts as one step of the exponent field, and a carry out of the
  // fraction as another, which is what rounding up to the next power of two means.
  const auto field = static_cast<std::uint64_t>(
      exponent > format.min_exponent ? exponent - format.min_exponent : 0);
  return std::min((field << format.fraction_bits()) + kept, format.infinity());
}

template <const Format& format>
constexpr bool is_normal(int exponent) {
  return exponent >= format.min_exponent && exponent <= format.max_exponent;
}

/// The same where the exponent is that of a normal number: the bits that are dropped round by one
/// addition, whose carry runs from the fraction into the exponent.
template <const Format& format>
KVCHECK_INTO_WIDE_LOOPS std::uint64_t encode_normal(std::uint64_t bits) {
  constexpr int dropped = std::max(1, kDoubleFraction - format.fraction_bits());
  constexpr std::uint64_t half = std::uint64_t{1} << (dropped - 1);
  constexpr auto bias = static_cast<std::uint64_t>(kDoubleBias + format.min_exponent - 1);
  const std::uint64_t magnitude = bits & ~(std::uint64_t{1} << 63);
  const std::uint64_t odd = magnitude >> dropped & 1;
  return ((magnitude + half - 1 + odd) >> dropped) - (bias << format.fraction_bits());
}

template <const Format& format>
std::uint64_t encode(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  if constexpr (format.bytes == sizeof(double)) return bits;
  const std::uint64_t sign = (bits >> 63) << format.sign_shift();
  const int field = static_cast<int>((bits >> kDoubleFraction) & 0x7ff);
  const std::uint64_t fraction = bits & kDoubleFractionMask;
  if (is_normal<format>(field - kDoubleBias)) return sign | encode_normal<format>(bits);
  if (field == 0x7ff) {
    return sign | (fraction != 0 ? encode_nan<format>(fraction) : format.infinity());
  }
  if (field == 0) return sign;  // Zero, or far below every narrower format.
  return sign | encode_finite<format>(field - kDoubleBias, fraction);
}

template <const Format& format>
double decode(std::uint64_t bits) {
  if constexpr (format.bytes == sizeof(double)) return std::bit_cast<double>(bits);
  const std::uint64_t sign = (bits >> format.sign_shift()) << 63;
  const std::uint64_t magnitude = bits & ((std::uint64_t{1} << format.sign_shift()) - 1);
  const int widen = kDoubleFraction - format.fraction_bits();
  const std::uint64_t fraction_mask = (std::uint64_t{1} << format.fraction_bits()) - 1;
  std::uint64_t wide = 0;
  if (magnitude > fraction_mask && magnitude < format.infinity()) {
    constexpr auto bias = static_cast<std::uint64_t>(kDoubleBias + format.min_exponent - 1);
    wide = (magnitude << widen) + (bias << kDoubleFraction);
  } else if (magnitude >= format.infinity()) {
    wide = (std::uint64_t{0x7ff} << kDoubleFraction) | ((magnitude & fraction_mask) << widen);
  } else if (magnitude != 0) {
    const int top = std::bit_width(magnitude) - 1;
    const int exponent = top + format.min_exponent - format.fraction_bits();
    wide = (static_cast<std::uint64_t>(exponent + kDoubleBias) << kDoubleFraction) |
           ((magnitude << (kDoubleFraction - top)) & kDoubleFractionMask);
  }
  return std::bit_cast<double>(sign | wide);
}

/// The same of a zero or a normal number.
template <const Format& format>
KVCHECK_INTO_WIDE_LOOPS double decode_plain(std::uint64_t bits) {
  constexpr auto bias = static_cast<std::uint64_t>(kDoubleBias + format.min_exponent - 1);
  const std::uint64_t magnitude = bits & ((std::uint64_t{1} << format.sign_shift()) - 1);
  const std::uint64_t wide =
      (magnitude << (kDoubleFraction - format.fraction_bits())) + (bias << kDoubleFraction);
  return std::bit_cast<double>((bits >> format.sign_shift()) << 63 | (magnitude == 0 ? 0 : wide));
}

/// Little-endian bytes of a pattern.
template <const Format& format>
void put_bytes(std::uint64_t bits, std::byte* where) {
  if constexpr (std::endian::native == std::endian::little) {
    std::memcpy(where, &bits, format.bytes);
    return;
  }
  for (std::size_t i = 0; i < format.bytes; ++i) {
    where[i] = static_cast<std::byte>((bits >> (8 * i)) & 0xff);
  }
}

template <const Format& format>
double load(const std::byte* where) {
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < format.bytes; ++i) {
    bits |= std::to_integer<std::uint64_t>(where[i]) << (8 * i);
  }
  return decode<format>(bits);
}

/// A normal number below the largest power of two, where all bits that are dropped are those of the
/// double's fraction.
template <const Format& format>
KVCHECK_INTO_WIDE_LOOPS double rounded_normal(std::uint64_t bits) {
  constexpr int dropped = std::max(1, kDoubleFraction - format.fraction_bits());
  constexpr std::uint64_t half = std::uint64_t{1} << (dropped - 1);
  const std::uint64_t odd = bits >> dropped & 1;
  return std::bit_cast<double>((bits + half - 1 + odd) & ~(2 * half - 1));
}

template <const Format& format>
double rounded(double value) {
  if constexpr (format.bytes == sizeof(double)) return value;
  if (std::isnan(value)) return value;
  // The processor's own conversion does the same; fills ask for millions of these.
  static_assert(std::numeric_limits<float>::is_iec559);
  if constexpr (format.bytes == sizeof(float)) {
    return static_cast<double>(static_cast<float>(value));
  }
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const int exponent = static_cast<int>((bits >> kDoubleFraction) & 0x7ff) - kDoubleBias;
  if (exponent >= format.min_exponent && exponent < format.max_exponent) {
    return rounded_normal<format>(bits);
  }
  return decode<format>(encode<format>(value));
}

}  // namespace kvcheck::model::formats
