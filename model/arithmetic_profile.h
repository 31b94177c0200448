// How a target computes: what its maintainer declares, and what every bound is derived from.
#pragma once

#include <cstdint>

#include "model/element_type.h"

namespace kvcheck::model {

/// A target's arithmetic in unit roundoffs. Defaults: plain f32 with sums in unknown order.
/// What is left at 0 or false costs the widest bound where it states an order of summation, and
/// nothing where it states a rounding that the target does not do.
struct ArithmeticProfile {
  // Precisions.
  double accumulator_roundoff = 0x1p-24;  ///< u of every operation that no other field speaks of.
  bool truncates = false;                 ///< Operations round towards zero: counts as 2u.
  double operand_roundoff = 0;       ///< Q, K, V rounded narrower before products (TF32: 2^-11).
  double product_roundoff = 0;       ///< Products rounded narrower than u before they are summed.
  double logit_roundoff = 0;         ///< Extra rounding when logits are stored narrower than u.
  double probability_roundoff = 0;   ///< u_P: weights stored narrower before P.V; 0 = not.
  bool sums_stored_weights = false;  ///< The row sum adds the weights as stored for P.V.
  double exp_error = 0x1p-23;        ///< Relative error of exp as returned: 1 ulp of f32.
  double tanh_error = 0x1p-21;       ///< Relative error of tanh as returned: 4 ulp of f32.
  bool exp_flushes = false;          ///< Results below the least normal number become 0.
  ElementType output_type = ElementType::f32;  ///< Type of the stored output.

  // Logits.
  bool base_two = false;           ///< Exponentials in base 2 with the factor folded into scale.
  bool fused_shift = false;        ///< exp(fma(logit, scale, -(max * scale))): rounds the maximum.
  bool scale_on_operands = false;  ///< sqrt(scale) on Q and on K; false = once, on either or after.
  bool exact_products = false;     ///< q * k fits u without rounding (16-bit operands, f32 sums).
  /// Roundings by the scales of a quantised cache, per key and per value: 1 where the scale is
  /// multiplied onto the operand before the product or onto the sum after it.
  std::int64_t dequantise_roundings = 0;

  // Orders of summation; 0 = unknown, which is the worst case.
  std::int64_t dot_ways = 0;     ///< Accumulators of q.k side by side, merged pairwise;
                                 ///< head_size or more = a pairwise sum.
  std::int64_t dot_block = 0;    ///< Lanes summed on their own before they join the running sum.
  std::int64_t value_block = 0;  ///< The same for keys in P.V and in the row sum.

  // Softmax in one pass.
  std::int64_t max_rescales = 0;   ///< Times the running maximum can rise; 0 = two-pass softmax.
  std::int64_t rescale_block = 1;  ///< Keys between two looks at the running maximum (tile).
  std::int64_t splits = 1;         ///< Partial results merged at the end.
  bool merges_by_lse = false;      ///< Splits are normalised and weighed by exp(lse_i - lse).

  friend bool operator==(const ArithmeticProfile&, const ArithmeticProfile&) = default;
};

/// Plain double arithmetic: two-pass softmax, exp within 1 ulp, tanh within 2, output stored as
/// f64.
ArithmeticProfile double_profile();

/// Most roundings that one term meets on its way through a sum of `count` terms, its addition to
/// a zero start not counted: blocks of `block` terms (0 = one block) of `ways` interleaved
/// accumulators each, merged pairwise, then the block sums one after the other. `ways` = 0 =
/// unknown order: count - 1, which no order exceeds.
/// Source: Higham, Accuracy and Stability, 2nd ed., 4.2; Blanchard, Higham, Mary 2020 (blocked).
double sum_depth(double count, std::int64_t ways, std::int64_t block);

/// Relative error of `count` roundings of `roundoff` each: (1 - roundoff)^-count - 1. It holds for
/// products and for quotients, to nearest and truncating; gamma_k of the literature is above it.
double compound_roundoff(double count, double roundoff);

/// u, doubled where operations truncate.
double operation_roundoff(const ArithmeticProfile& profile);

/// Relative error of a store as `type`; 0 where the accumulator is no wider.
double store_roundoff(const ArithmeticProfile& profile, ElementType type);

/// `count` roundings in the worst case; with `deviations` above 0 what they come to when they are
/// independent with mean zero, at so many standard deviations.
double effective_count(double count, double deviations);

/// Relative errors that all lanes and keys of a row share, from counts of roundings.
struct RowErrors {
  double dot_roundings = 0;  ///< Roundings of one logit.
  double dot = 0;            ///< Of scale * q.k, relative to scale * sum|q_c k_c|.
  double pv = 0;             ///< Of P cast, P.V sum and normalisation, relative to sum w_j |v_j|.
  double sum = 0;            ///< Of the row sum.
  double store = 0;          ///< Of division and store.
  double rescales = 0;       ///< Most that any key meets.
  bool two_pass = false;     ///< Nothing is rescaled or merged.
  bool normalises = false;   ///< The weights may be normalised before P.V.
};

/// \pre keys > 0
RowErrors row_errors(const ArithmeticProfile& profile, std::int64_t head_size, std::int64_t keys,
                     double deviations = 0);

}  // namespace kvcheck::model
