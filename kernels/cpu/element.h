// Single elements of a tensor as numbers, and back.
#pragma once

#include <cstddef>

#include "kernels/target.h"

namespace kvcheck::kernels {

/// Writes `value`, rounded to nearest even, as one element of `type` at `to`. i8, u8 and f8e4m3
/// clamp. \pre i64: value is a whole number within 2^53
void encode_element(ElementType type, double value, std::byte* to);

/// The element of `type` at `from`; exact for every type. boolean: 0 or 1.
double decode_element(ElementType type, const std::byte* from);

}  // namespace kvcheck::kernels
