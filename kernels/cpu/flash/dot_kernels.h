// The tile kernels that multiply in bf16.
#pragma once

#include "kernels/cpu/flash/kernels.h"

namespace kvcheck::kernels::flash {

/// Kernels by the processor's own dot products of bf16 pairs, AVX512_BF16; nullptr where it has
/// none. For caches in bf16 alone, with queries of bf16, or of f32 that are rounded to bf16; scales
/// of key lanes are not taken.
const Kernels* dot_kernels();

}  // namespace kvcheck::kernels::flash
