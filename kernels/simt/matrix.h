// The arithmetic of mma.m16n8k16 and which lane holds what of its matrices.
//
// Rounding, as declared: NVIDIA documents none. The model is that of an H100's matrix unit as
// Khattak and Mikaitis measured it (Accurate Models of NVIDIA Tensor Cores, arXiv 2512.07004;
// after Fasi et al., PeerJ CS 330, 2021). Products are exact. The 16 products and the accumulator
// are aligned to the largest exponent among them (of a product: the sum of its factors'
// exponents, at least -133), cut off towards zero 25 bits below it, added exactly, and the sum is
// cut off towards zero to f32. So one call is off by at most 17 * 2^-25 times the power of two of
// its largest term, and by 2^-23 of its result; other generations of hardware differ in blocks and
// bits, so outputs are compared by bound. Subnormals count. Any NaN, infinity minus infinity or
// infinity times zero is the NaN 0x7fffffff.
#pragma once

#include <array>
#include <cstdint>

namespace kvcheck::kernels::simt {

enum class Half { f16, bf16 };

/// d += a b, matrices by row and column.
struct MatrixProduct {
  std::array<std::array<std::uint16_t, 16>, 16> a;  ///< [m][k], bits.
  std::array<std::array<std::uint16_t, 8>, 16> b;   ///< [k][n], bits.
  std::array<std::array<float, 8>, 16> d;           ///< [m][n]
};

void multiply_add(Half format, MatrixProduct& product);

/// What one lane holds of it, two 16-bit elements in a word. With g = lane / 4 and t = lane % 4
/// (PTX ISA, Matrix Fragments for mma.m16n8k16 with floating point type):
///   a[0..3]  rows g, g + 8, g, g + 8;  columns 2t and 2t + 1, in a[2] and a[3] 8 more
///   b[0..1]  rows 2t and 2t + 1, in b[1] 8 more;  column g
///   d[0..3]  rows g, g, g + 8, g + 8;  columns 2t, 2t + 1, 2t, 2t + 1
struct Fragments {
  std::array<std::uint32_t, 4> a;
  std::array<std::uint32_t, 2> b;
  std::array<float, 4> d;
};
void place(int lane, const Fragments& fragments, MatrixProduct& product);
std::array<float, 4> sums_of(int lane, const MatrixProduct& product);

}  // namespace kvcheck::kernels::simt
