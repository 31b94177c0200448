// How a simulated row kernel computes, and the profile that its maintainer would declare.
#pragma once

#include <cstdint>

#include "model/error_bound.h"
#include "tests/model/simulated_kernel_arithmetic.h"

namespace kvcheck::model {

struct RowStyle {
  ElementType accumulator = ElementType::f32;
  Narrowing logits{};    ///< Of logits as stored.
  Narrowing weights{};   ///< Of P before P.V.
  Narrowing operands{};  ///< Of Q, K and V.
  Narrowing output = narrowing(ElementType::f32);
  double exp_error = 0x1p-23;  ///< Errors are drawn up to these, rounding included.
  double tanh_error = 0x1p-21;
  double flushes_below = 0;  ///< Results of exp.

  // Logits.
  bool fma = false;
  bool backwards = false;  ///< Lanes and keys from the last to the first.
  bool scale_on_query = false;
  bool scale_on_operands = false;
  bool dequantise_first = true;  ///< Scales of a quantised cache: on operands, or on the sums.
  bool base_two = false;
  bool fused_shift = false;  ///< Without biases and softcap only.
  std::size_t dot_ways = 1;
  std::size_t dot_block = 0;

  // Softmax and P.V.
  std::size_t tile = 0;  ///< Keys per tile of an online softmax; 0 = two-pass.
  std::size_t value_ways = 1;
  std::size_t value_block = 0;  ///< Divides the tile.
  bool normalise_first = false;
  bool reciprocal = false;
  bool sums_stored_weights = false;
  bool sink_in_maximum = true;
  std::size_t splits = 1;
  bool merges_by_lse = false;

  bool declares_order = true;  ///< Whether the profile tells the orders of summation.
};

inline double roundoff_of(const Narrowing& narrow) {
  return narrow.bits == 0 ? 0 : std::ldexp(1.0, -narrow.bits);
}

/// The profile for outputs of `type` from a cache that is quantised or not.
inline ArithmeticProfile profile_of(const RowStyle& style, ElementType type, bool quantised) {
  ArithmeticProfile p;
  p.accumulator_roundoff = unit_roundoff(style.accumulator);
  p.logit_roundoff = roundoff_of(style.logits);
  p.probability_roundoff = roundoff_of(style.weights);
  p.operand_roundoff = roundoff_of(style.operands);
  p.exp_error = style.exp_error;
  p.tanh_error = style.tanh_error;
  p.scale_on_operands = style.scale_on_operands;
  p.dequantise_roundings = quantised ? 1 : 0;
  p.base_two = style.base_two;
  p.fused_shift = style.fused_shift;
  p.sums_stored_weights = style.sums_stored_weights;
  p.splits = static_cast<std::int64_t>(style.splits);
  p.merges_by_lse = style.merges_by_lse;
  p.output_type = type;
  if (style.tile > 0) p.max_rescales = 1 << 20;
  if (!style.declares_order) return p;
  p.rescale_block = static_cast<std::int64_t>(style.tile > 0 ? style.tile : 1);
  p.dot_ways = static_cast<std::int64_t>(style.dot_ways);
  p.dot_block = static_cast<std::int64_t>(style.dot_block);
  p.value_block = static_cast<std::int64_t>(style.value_block);
  return p;
}

}  // namespace kvcheck::model
