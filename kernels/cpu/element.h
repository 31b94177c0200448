// Single elements of a tensor as numbers, and back.
#pragma once

#include <cstddef>

#include "kernels/target.h"

namespace kvcheck::kernels {

/// Writes `value`, rounded to nearest even, as one element of `type` at `to`. i8, u8 and f8e4m3
/// clamp; a NaN gives the highest i8 and u8. \pre i64: value is a whole number within 2^53
void encode_element(ElementType type, double value, std::byte* to);

/// The element of `type` at `from`; exact for every type. boolean: 0 or 1.
double decode_element(ElementType type, const std::byte* from);

/// `count` elements of `type` that lie next to each other, as numbers. Exact for every type but f64
/// and i64 as float.
template <class Real>
void decode_row(ElementType type, const std::byte* from, std::size_t count, Real* to);

/// `count` numbers, each rounded once, to nearest even, as elements of `type`.
template <class Real>
void encode_row(ElementType type, const Real* from, std::size_t count, std::byte* to);

}  // namespace kvcheck::kernels
