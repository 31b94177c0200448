// Rounding-error bound of one attention row, from the arithmetic that a target declares.
//
// Derivation: the shared relative error of every weight is Lambda_j; since the weights are
// normalised, the output moves by at most [sum w_j |v_j - o| (exp(Lambda_j)-1)] / (1 - Phi),
// plus the P cast, the P.V sum, the row sum, the division and the store. model/README.md has the
// page of mathematics; tests/model/error_bound_test.cpp checks it against simulated kernels.
#pragma once

#include <cstdint>
#include <span>

#include "model/element_type.h"

namespace kvcheck::model {

/// How a target computes, in unit roundoffs. Defaults: plain f32 arithmetic.
struct ArithmeticProfile {
  double accumulator_roundoff = 5.9604644775390625e-8;  ///< u = 2^-24 for f32 sums.
  double logit_roundoff = 0;        ///< Extra rounding when logits are stored narrower than u.
  double probability_roundoff = 0;  ///< u_P: weights stored narrower before P.V; 0 = not.
  double exp_error = 1.1920928955078125e-7;  ///< Relative error of exp: 1 ulp of f32.
  bool exp_flushes = false;         ///< exp returns 0 below the least normal number.
  bool base_two = false;            ///< Exponentials in base 2 with the factor folded into scale.
  bool scale_on_operands = false;   ///< sqrt(scale) on Q and on K: two more roundings per product.
  std::int64_t max_rescales = 0;    ///< Times the running maximum can rise; 0 = two-pass softmax.
  std::int64_t splits = 1;          ///< Partial results merged at the end.
  ElementType output_type = ElementType::f32;  ///< Type of the stored output.
};

/// The terms of the bound for one output element, kept apart so that a report can show which one
/// dominates.
struct BoundTerms {
  double weights = 0;      ///< Logit, shift, exp and rescale errors.
  double sums = 0;         ///< P cast, P.V sum, row sum.
  double underflow = 0;    ///< Weights lost below the least subnormal.
  double store = 0;        ///< Division and rounding of the output.
  double total() const { return weights + sums + underflow + store; }
};

}  // namespace kvcheck::model
