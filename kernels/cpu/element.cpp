// Single elements of a tensor as numbers, and back.
#include "kernels/cpu/element.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include <Eigen/Core>

namespace kvcheck::kernels {
namespace {

template <class Storage>
void put(Storage value, std::byte* to) {
  std::memcpy(to, &value, sizeof value);
}

template <class Storage>
double get(const std::byte* from) {
  Storage value;
  std::memcpy(&value, from, sizeof value);
  return static_cast<double>(value);
}

template <class Whole>
Whole nearest(double value) {
  if (std::isnan(value)) return std::numeric_limits<Whole>::max();
  const double low = std::numeric_limits<Whole>::min();
  const double high = std::numeric_limits<Whole>::max();
  return static_cast<Whole>(std::clamp(std::nearbyint(value), low, high));
}

/// The float next to `value` whose last bit tells that it is not exact: rounding it to fewer bits
/// rounds `value` once.
float to_odd(double value) {
  const auto nearest_float = static_cast<float>(value);
  const auto back = static_cast<double>(nearest_float);
  if (back == value || !std::isfinite(nearest_float)) return nearest_float;
  std::uint32_t bits;
  std::memcpy(&bits, &nearest_float, sizeof bits);
  if (std::abs(back) > std::abs(value)) --bits;  // Towards zero.
  bits |= 1;
  float odd;
  std::memcpy(&odd, &bits, sizeof odd);
  return odd;
}

/// e4m3fn: exponent bias 7, no infinities, 0x7f and 0xff are NaN.
double decode_f8(std::uint8_t byte) {
  const int exponent = byte >> 3 & 15;
  const int fraction = byte & 7;
  if ((byte & 0x7f) == 0x7f) return std::numeric_limits<double>::quiet_NaN();
  const double magnitude =
      exponent == 0 ? std::ldexp(fraction, -9) : std::ldexp(8 + fraction, exponent - 10);
  return (byte & 0x80) != 0 ? -magnitude : magnitude;
}

/// To nearest, ties to even, clamped to +-448.
std::uint8_t encode_f8(double value) {
  if (std::isnan(value)) return 0x7f;
  const double magnitude = std::min(std::abs(value), 448.0);
  const int exponent = magnitude < 0x1p-6 ? -6 : std::ilogb(magnitude);
  // Eighths of the binade; 8 of them and more carry into the exponent by themselves.
  const int steps = static_cast<int>(std::nearbyint(std::ldexp(magnitude, 3 - exponent)));
  const int code = steps + (exponent + 6) * 8;
  return static_cast<std::uint8_t>(std::min(code, 0x7e) | (std::signbit(value) ? 0x80 : 0));
}

}  // namespace

void encode_element(ElementType type, double value, std::byte* to) {
  switch (type) {
    case ElementType::f32:
      return put(static_cast<float>(value), to);
    case ElementType::f16:
      return put(Eigen::half(to_odd(value)), to);
    case ElementType::bf16:
      return put(Eigen::bfloat16(to_odd(value)), to);
    case ElementType::f64:
      return put(value, to);
    case ElementType::boolean:
      *to = static_cast<std::byte>(value != 0);
      return;
    case ElementType::i8:
      return put(nearest<std::int8_t>(value), to);
    case ElementType::u8:
      return put(nearest<std::uint8_t>(value), to);
    case ElementType::f8e4m3:
      return put(encode_f8(value), to);
    case ElementType::i64:
      return put(static_cast<std::int64_t>(value), to);
    case ElementType::i32:
      return put(static_cast<std::int32_t>(value), to);
  }
}

double decode_element(ElementType type, const std::byte* from) {
  switch (type) {
    case ElementType::f32:
      return get<float>(from);
    case ElementType::f16:
      return get<Eigen::half>(from);
    case ElementType::bf16:
      return get<Eigen::bfloat16>(from);
    case ElementType::f64:
      return get<double>(from);
    case ElementType::boolean:
      return *from == std::byte{0} ? 0 : 1;
    case ElementType::i8:
      return get<std::int8_t>(from);
    case ElementType::u8:
      return get<std::uint8_t>(from);
    case ElementType::f8e4m3:
      return decode_f8(std::to_integer<std::uint8_t>(*from));
    case ElementType::i64:
      return get<std::int64_t>(from);
    case ElementType::i32:
      return get<std::int32_t>(from);
  }
  return 0;
}

namespace {

template <class Storage, class Real>
void widen(const std::byte* from, std::size_t count, Real* to) {
  for (std::size_t i = 0; i < count; ++i) {
    Storage value;
    std::memcpy(&value, from + i * sizeof value, sizeof value);
    to[i] = static_cast<Real>(value);
  }
}

}  // namespace

template <class Real>
void decode_row(ElementType type, const std::byte* from, std::size_t count, Real* to) {
  switch (type) {
    case ElementType::f32:
      return widen<float>(from, count, to);
    case ElementType::f16:
      return widen<Eigen::half>(from, count, to);
    case ElementType::bf16:
      return widen<Eigen::bfloat16>(from, count, to);
    case ElementType::f64:
      return widen<double>(from, count, to);
    default:
      const std::size_t size = element_bytes(type);
      for (std::size_t i = 0; i < count; ++i) {
        to[i] = static_cast<Real>(decode_element(type, from + i * size));
      }
  }
}

template <class Real>
void encode_row(ElementType type, const Real* from, std::size_t count, std::byte* to) {
  const std::size_t size = element_bytes(type);
  if constexpr (std::is_same_v<Real, float>) {
    // One rounding as they are.
    if (type == ElementType::f32) {
      if (count > 0) std::memcpy(to, from, count * size);
      return;
    }
    if (type == ElementType::f16) {
      for (std::size_t i = 0; i < count; ++i) put(Eigen::half(from[i]), to + i * size);
      return;
    }
    if (type == ElementType::bf16) {
      for (std::size_t i = 0; i < count; ++i) put(Eigen::bfloat16(from[i]), to + i * size);
      return;
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    encode_element(type, static_cast<double>(from[i]), to + i * size);
  }
}

template void decode_row(ElementType, const std::byte*, std::size_t, float*);
template void decode_row(ElementType, const std::byte*, std::size_t, double*);
template void encode_row(ElementType, const float*, std::size_t, std::byte*);
template void encode_row(ElementType, const double*, std::size_t, std::byte*);

}  // namespace kvcheck::kernels
