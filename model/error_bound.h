// Rounding-error bound of one attention row, from the arithmetic that a target declares.
//
// Derivation: the shared relative error of every weight is Lambda_j; since the weights are
// normalised, the output moves by at most [sum w_j |v_j - o| (exp(Lambda_j)-1)] / (1 - Phi),
// plus the P cast, the P.V sum, the row sum, the division and the store. model/README.md has the
// page of mathematics; tests/model/error_bound_test.cpp checks it against simulated kernels.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/element_type.h"

namespace kvcheck::model {

/// How a target computes, in unit roundoffs. Defaults: plain f32 arithmetic.
struct ArithmeticProfile {
  double accumulator_roundoff = 5.9604644775390625e-8;  ///< u = 2^-24 for f32 sums.
  double logit_roundoff = 0;        ///< Extra rounding when logits are stored narrower than u.
  double probability_roundoff = 0;  ///< u_P: weights stored narrower before P.V; 0 = not.
  double exp_error = 1.1920928955078125e-7;  ///< Relative error of exp: 1 ulp of f32.
  double tanh_error = 4.76837158203125e-7;   ///< Relative error of tanh: 4 ulp of f32.
  bool exp_flushes = false;                  ///< exp returns 0 below the least normal number.
  bool base_two = false;           ///< Exponentials in base 2 with the factor folded into scale.
  bool scale_on_operands = false;  ///< sqrt(scale) on Q and on K: two more roundings per product.
  std::int64_t max_rescales = 0;   ///< Times the running maximum can rise; 0 = two-pass softmax.
  std::int64_t splits = 1;         ///< Partial results merged at the end.
  ElementType output_type = ElementType::f32;  ///< Type of the stored output.
};

/// The terms of the bound for one output element, kept apart so that a report can show which one
/// dominates.
struct BoundTerms {
  double weights = 0;    ///< Logit, shift, exp and rescale errors.
  double sums = 0;       ///< P cast, P.V sum, row sum.
  double underflow = 0;  ///< Weights lost below the least subnormal.
  double store = 0;      ///< Division and rounding of the output.
  double total() const { return weights + sums + underflow + store; }
};

/// Plain double arithmetic: two-pass softmax, exp within 1 ulp, output stored as f64.
ArithmeticProfile double_profile();

/// One visible key of a row, as the bound sees it.
struct KeyTerm {
  double product = 0;        ///< scale * q.k
  double magnitude = 0;      ///< scale * sum over lanes of |q_c k_c|
  double bias = 0;           ///< What the mask adds; 0 for none.
  double weight = 0;         ///< Softmax weight.
  double score = 0;          ///< The product after softcap; equals product without one.
  double operand_error = 0;  ///< scale * sum(|q_c| dk_c + |k_c| dq_c + dq_c dk_c), see operands.h.
};

/// Sums over the visible keys for one output lane, o being the output there.
struct LaneSums {
  double spread = 0;     ///< sum w_j |v_j - o| growth_j, growth from the same RowBound.
  double magnitude = 0;  ///< sum w_j |v_j|
  double values = 0;     ///< sum |v_j|
  double widest = 0;     ///< max |v_j - o|; read only if RowBound::needs_widest().
  double value_error = 0;  ///< sum w_j dv_j: values that the target may hold otherwise.
};

/// Stages of a logit: scale * q.k, after softcap, after the bias.
enum class LogitStage { product, score, logit };

/// The bound of one row: what all its output lanes share.
class RowBound {
 public:
  explicit RowBound(const ArithmeticProfile& profile);

  /// Takes the row in; `exp_sum` is the sum of exp(s_j - max s) over `keys`.
  /// \pre keys is not empty
  void set_row(std::int64_t head_size, std::span<const KeyTerm> keys, double exp_sum,
               double softcap = 0);

  /// growth_j = exp(Lambda_j) - 1: how much the error may stretch weight j. Above 0.
  std::span<const double> growth() const { return growth_; }

  /// Absolute error of one logit up to a stage.
  double logit_error(const KeyTerm& key, LogitStage stage) const;

  /// Absolute error of weight j as it is handed out, `total` being sum w_i growth_i.
  double weight_error(std::size_t j, double weight, double total) const;

  /// Whether the weights' errors are so large that only the range of the values limits them.
  bool needs_widest() const { return total_growth_ > 0.5; }

  /// The bound of the lane whose output is `output`. May be infinite, never NaN.
  BoundTerms terms(const LaneSums& sums, double output) const;

 private:
  ArithmeticProfile profile_;
  double store_error_;     // Relative error of division and store.
  double store_spacing_;   // Absolute error of the store among subnormal numbers.
  double weight_spacing_;  // The same of a stored weight.
  std::vector<double> growth_;
  double dot_error_ = 0;     // Relative error of a dot product.
  double total_growth_ = 0;  // Phi = sum w_j growth_j
  double sum_error_ = 0;     // gamma_N
  double lost_ = 0;          // Absolute error of one weight by underflow, over the row sum.
  double flushed_ = 0;       // The part of it that the row sum loses too.
};

}  // namespace kvcheck::model
