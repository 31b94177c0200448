// Names, constants and single elements of the element types; element_rows.cpp has their rows.
#include "model/element_type.h"

#include <array>
#include <cmath>
#include <limits>

#include "model/element_format.h"

namespace kvcheck::model {
namespace {

using namespace formats;

struct Name {
  ElementType type;
  std::string_view name;
};

constexpr std::array kNames{Name{ElementType::f32, "f32"}, Name{ElementType::f16, "f16"},
                            Name{ElementType::bf16, "bf16"}, Name{ElementType::f64, "f64"}};

}  // namespace

std::string_view to_string(ElementType type) {
  for (const Name& entry : kNames) {
    if (entry.type == type) return entry.name;
  }
  return "f32";
}

std::optional<ElementType> element_type_from(std::string_view name) {
  for (const Name& entry : kNames) {
    if (entry.name == name) return entry.type;
  }
  return std::nullopt;
}

std::size_t element_bytes(ElementType type) { return format_of(type).bytes; }

double unit_roundoff(ElementType type) { return std::ldexp(1.0, -format_of(type).precision); }

double subnormal_half_spacing(ElementType type) {
  const Format& format = format_of(type);
  if (&format == &kF64) return std::numeric_limits<double>::denorm_min();
  return std::ldexp(1.0, format.min_exponent - format.precision);
}

double largest_finite(ElementType type) {
  const std::uint64_t bits = format_of(type).infinity() - 1;
  switch (type) {
    case ElementType::f16:
      return decode<kF16>(bits);
    case ElementType::bf16:
      return decode<kBf16>(bits);
    case ElementType::f64:
      return decode<kF64>(bits);
    case ElementType::f32:
      break;
  }
  return decode<kF32>(bits);
}

double round_to(ElementType type, double value) {
  switch (type) {
    case ElementType::f16:
      return rounded<kF16>(value);
    case ElementType::bf16:
      return rounded<kBf16>(value);
    case ElementType::f64:
      return value;
    case ElementType::f32:
      break;
  }
  return rounded<kF32>(value);
}

void store_element(ElementType type, double value, std::byte* where) {
  switch (type) {
    case ElementType::f16:
      return put_bytes<kF16>(encode<kF16>(value), where);
    case ElementType::bf16:
      return put_bytes<kBf16>(encode<kBf16>(value), where);
    case ElementType::f64:
      return put_bytes<kF64>(encode<kF64>(value), where);
    case ElementType::f32:
      break;
  }
  put_bytes<kF32>(encode<kF32>(value), where);
}

double load_element(ElementType type, const std::byte* where) {
  switch (type) {
    case ElementType::f16:
      return load<kF16>(where);
    case ElementType::bf16:
      return load<kBf16>(where);
    case ElementType::f64:
      return load<kF64>(where);
    case ElementType::f32:
      break;
  }
  return load<kF32>(where);
}

}  // namespace kvcheck::model
