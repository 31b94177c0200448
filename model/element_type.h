// Element types of tensors, and their exact rounding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace kvcheck::model {

/// Storage type of queries, keys, values and outputs.
enum class ElementType { f32, f16, bf16, f64 };

/// "f32", "f16", "bf16" or "f64".
std::string_view to_string(ElementType type);
std::optional<ElementType> element_type_from(std::string_view name);

/// Bytes of one element.
std::size_t element_bytes(ElementType type);

/// Unit roundoff 2^-p of the type: half the distance between 1 and the next value.
double unit_roundoff(ElementType type);

/// Half the spacing of the subnormal numbers of the type; for f64, where the half is no double,
/// the whole spacing.
double subnormal_half_spacing(ElementType type);

/// Largest finite value.
double largest_finite(ElementType type);

/// The value of the type nearest to `value`, ties to even; overflow gives infinity, NaN stays.
double round_to(ElementType type, double value);

/// Rounds every element of `row` in place.
void round_row(ElementType type, std::span<double> row);

/// Stores `value` (first rounded to the type) at `where` in little-endian order. A NaN keeps its
/// sign and its leading payload bits.
void store_element(ElementType type, double value, std::byte* where);

/// Stores the elements of `row` one after the other.
/// \pre `where` has room for row.size() * element_bytes(type)
void store_elements(ElementType type, std::span<const double> row, std::byte* where);

/// The value stored at `where`; exact, since every type here is a subset of double.
double load_element(ElementType type, const std::byte* where);

/// The values stored one after the other from `where` on.
void load_elements(ElementType type, const std::byte* where, std::span<double> row);

}  // namespace kvcheck::model
