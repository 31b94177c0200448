// All of it in double: products and sums of f32 values are exact or rounded once there, so that no
// flush-to-zero setting of the process can change a code.
#include "model/quantisation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "model/element_type.h"

namespace kvcheck::model {
namespace {

constexpr double kLargestFp8 = 448;
constexpr int kFp8FractionBits = 3;
constexpr int kFp8Bias = 7;
constexpr int kFp8LeastExponent = 1 - kFp8Bias;
constexpr std::uint8_t kFp8Nan = 0x7f;
constexpr int kInt4Bias = 8;

/// The integer nearest to a finite value, ties to even, whatever the rounding mode.
double round_half_to_even(double value) {
  const double below = std::floor(value);
  const double rest = value - below;
  if (rest < 0.5) return below;
  if (rest > 0.5) return below + 1;
  return std::fmod(below, 2) == 0 ? below : below + 1;
}

/// The value over its scale as an f32. A quotient of two f32 rounded to double and then to f32 is
/// rounded as if once, because 53 >= 2 * 24 + 2; a product of two is exact in double.
double unscaled(float scale, double value, QuantisationVariant variant) {
  const double operand = round_to(ElementType::f32, value);
  const auto divisor = static_cast<double>(scale);
  if (divisor == 0) return operand;
  const double quotient = variant == QuantisationVariant::by_division
                              ? operand / divisor
                              : operand * round_to(ElementType::f32, 1 / divisor);
  return round_to(ElementType::f32, quotient);
}

std::uint8_t int4_nibble(double code) {
  return static_cast<std::uint8_t>(static_cast<int>(code) + kInt4Bias);
}

}  // namespace

CodeRange code_range(QuantisationKind kind) {
  switch (kind) {
    case QuantisationKind::int8:
      return {-128, 127};
    case QuantisationKind::int4:
      return {-8, 7};
    case QuantisationKind::fp8:
      return {-kLargestFp8, kLargestFp8};
    case QuantisationKind::none:
      break;
  }
  return {};
}

double quantise(QuantisationKind kind, float scale, double value, QuantisationVariant variant) {
  const CodeRange range = code_range(kind);
  const double exact = unscaled(scale, value, variant);
  if (std::isnan(exact)) return range.highest;
  // Both ends are codes, so clamping first gives what clamping last gives.
  const double clamped = std::clamp(exact, range.lowest, range.highest);
  return kind == QuantisationKind::fp8 ? round_to_fp8(clamped) : round_half_to_even(clamped);
}

CodeRange quantise_interval(QuantisationKind kind, float scale, double low, double high) {
  if (std::isnan(low) || std::isnan(high)) return code_range(kind);
  // Every step is monotone, so the ends decide; but where infinity meets 0 they are NaN, and a
  // value between them is not.
  const std::array values{low, high, std::clamp(0.0, low, high)};
  CodeRange found{std::numeric_limits<double>::infinity(),
                  -std::numeric_limits<double>::infinity()};
  for (const auto variant :
       {QuantisationVariant::by_reciprocal, QuantisationVariant::by_division}) {
    for (const double value : values) {
      const double code = quantise(kind, scale, value, variant);
      found.lowest = std::min(found.lowest, code);
      found.highest = std::max(found.highest, code);
    }
  }
  return found;
}

double dequantise(double code, float scale) {
  return round_to(ElementType::f32, code * static_cast<double>(scale));
}

double round_to_fp8(double value) {
  if (std::isnan(value)) return value;
  const double magnitude = std::min(std::fabs(value), kLargestFp8);
  if (magnitude == 0) return value;
  const int exponent = std::max(std::ilogb(magnitude), kFp8LeastExponent);
  const int spacing = exponent - kFp8FractionBits;
  const double rounded = std::ldexp(round_half_to_even(std::ldexp(magnitude, -spacing)), spacing);
  return std::copysign(rounded, value);
}

std::uint8_t encode_fp8(double value) {
  const double rounded = round_to_fp8(value);
  if (std::isnan(rounded)) return kFp8Nan;
  const unsigned sign = std::signbit(rounded) ? 0x80U : 0U;
  const double magnitude = std::fabs(rounded);
  if (magnitude == 0) return static_cast<std::uint8_t>(sign);
  const int exponent = std::max(std::ilogb(magnitude), kFp8LeastExponent);
  // With the hidden bit, which counts as one step of the exponent field: a subnormal lacks both.
  const auto significand =
      static_cast<unsigned>(std::ldexp(magnitude, kFp8FractionBits - exponent));
  const auto field = static_cast<unsigned>(exponent - kFp8LeastExponent);
  return static_cast<std::uint8_t>(sign | ((field << kFp8FractionBits) + significand));
}

double decode_fp8(std::uint8_t byte) {
  const unsigned magnitude = byte & 0x7fU;
  if (magnitude == kFp8Nan) return std::numeric_limits<double>::quiet_NaN();
  const unsigned field = magnitude >> kFp8FractionBits;
  const unsigned hidden = field == 0 ? 0U : 1U << kFp8FractionBits;
  const auto significand = static_cast<double>((magnitude & 0x7U) | hidden);
  const int exponent = std::max(static_cast<int>(field), 1) - kFp8Bias;
  const double value = std::ldexp(significand, exponent - kFp8FractionBits);
  return (byte & 0x80U) != 0 ? -value : value;
}

std::int64_t row_bytes(QuantisationKind kind, std::int64_t head_size) {
  return kind == QuantisationKind::int4 ? head_size / 2 + head_size % 2 : head_size;
}

std::int64_t scale_count(const Quantisation& quantisation, std::int64_t kv_heads,
                         std::int64_t head_size) {
  return quantisation.per_channel ? kv_heads * head_size : 1;
}

void store_row(QuantisationKind kind, std::span<const double> codes, std::span<std::byte> bytes) {
  if (kind == QuantisationKind::int4) {
    for (std::size_t lane = 0; lane < codes.size(); lane += 2) {
      const double odd = lane + 1 < codes.size() ? codes[lane + 1] : 0;
      bytes[lane / 2] = static_cast<std::byte>(int4_nibble(codes[lane]) | int4_nibble(odd) << 4);
    }
    return;
  }
  for (std::size_t lane = 0; lane < codes.size(); ++lane) {
    bytes[lane] = kind == QuantisationKind::fp8
                      ? static_cast<std::byte>(encode_fp8(codes[lane]))
                      : static_cast<std::byte>(static_cast<std::int8_t>(codes[lane]));
  }
}

void load_row(QuantisationKind kind, std::span<const std::byte> bytes, std::span<double> codes) {
  for (std::size_t lane = 0; lane < codes.size(); ++lane) {
    if (kind == QuantisationKind::int4) {
      const auto pair = std::to_integer<int>(bytes[lane / 2]);
      codes[lane] = (lane % 2 == 0 ? pair & 0xf : pair >> 4) - kInt4Bias;
    } else if (kind == QuantisationKind::fp8) {
      codes[lane] = decode_fp8(std::to_integer<std::uint8_t>(bytes[lane]));
    } else {
      codes[lane] = std::to_integer<std::int8_t>(bytes[lane]);
    }
  }
}

}  // namespace kvcheck::model
