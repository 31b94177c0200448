// The arithmetic of the kernels of kernels/cuda.
#include "kernels/cuda/arithmetic.h"

namespace kvcheck::kernels::device {
namespace {

/// ex2.approx.ftz.f32 (PTX ISA): relative error 2^-22.
constexpr double kExp2Error = 0x1p-22;

/// CUDA cores, scores in memory: two passes, sums in f32.
Arithmetic unfused() {
  Arithmetic arithmetic;
  arithmetic.accumulator_roundoff = 0x1p-24;
  arithmetic.exp_error = kExp2Error;
  arithmetic.exp_flushes = true;
  arithmetic.base_two = true;
  arithmetic.tanh_error = 0x1p-21;
  return arithmetic;
}

/// Online softmax over tiles, whose partial results (of warps, of splits, and a sink) are merged.
/// Where a mask leaves one key of each tile, every one of them may raise the maximum of all before
/// it, so a key meets as many rescales as there are other keys.
Arithmetic tiled() {
  Arithmetic arithmetic = unfused();
  arithmetic.rescale_block = 1;
  arithmetic.max_rescales = std::int64_t{1} << 30;
  arithmetic.splits = 2;
  return arithmetic;
}

/// Tensor cores besides: products of 16 bits are exact, sums are cut off rather than rounded, and
/// weights are rounded to 16 bits for P.V alone; the scale is part of the exponential (prefill).
/// \param roundoff of the element type
Arithmetic matrix(double roundoff) {
  Arithmetic arithmetic = tiled();
  arithmetic.truncates = true;
  arithmetic.exact_products = true;
  arithmetic.fused_shift = true;
  arithmetic.probability_roundoff = roundoff;
  return arithmetic;
}

}  // namespace

void declare_arithmetic(Capabilities& can, bool quantised) {
  can.arithmetic = unfused();
  for (const char* op : {"gqa", "attention"}) {
    const std::string of(op);
    can.arithmetic_where[of + " f16"] = quantised ? tiled() : matrix(0x1p-11);
    can.arithmetic_where[of + " bf16"] = quantised ? tiled() : matrix(0x1p-8);
  }
  if (!quantised) return;
  // A code is multiplied by its scale before the products, or the sum after them.
  can.arithmetic.dequantise_roundings = 1;
  for (auto& [where, arithmetic] : can.arithmetic_where) arithmetic.dequantise_roundings = 1;
}

}  // namespace kvcheck::kernels::device
