// Rounding-error bound of one attention row, from the arithmetic that a target declares.
//
// Derivation: the shared relative error of every weight is Lambda_j; since the weights are
// normalised, the output moves by at most [sum w_j |v_j - o| (exp(Lambda_j)-1)] / (1 - Phi),
// plus the P cast, the P.V sum, the row sum, the division and the store. model/README.md has the
// page of mathematics; tests/model/error_bound_simulation_test.cpp checks it against simulated
// kernels. Nothing in it is fitted, and no term is first-order: see README, "Bound".
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "model/arithmetic_profile.h"

namespace kvcheck::model {

/// The terms of the bound for one output element, kept apart so that a report can show which one
/// dominates.
struct BoundTerms {
  double weights = 0;    ///< Logit, shift, exp and rescale errors.
  double sums = 0;       ///< P cast, P.V sum, row sum.
  double underflow = 0;  ///< What is lost among subnormal numbers before the output.
  double store = 0;      ///< Division and rounding of the output.
  double operands = 0;   ///< Values that the target may hold otherwise (LaneSums::value_error).
  double total() const { return weights + sums + underflow + store + operands; }
};

/// One visible key of a row, as the bound sees it. The logit is score + bias. A sink is one more
/// key: product = score = its logit, magnitude 0, bias 0, and a value of 0 in every lane.
struct KeyTerm {
  double product = 0;        ///< scale * q.k
  double magnitude = 0;      ///< scale * sum over lanes of |q_c k_c|
  double bias = 0;           ///< What the mask adds; 0 for none.
  double weight = 0;         ///< Softmax weight.
  double score = 0;          ///< The product after softcap; equals product without one.
  double operand_error = 0;  ///< scale * sum(|q_c| dk_c + |k_c| dq_c + dq_c dk_c), see operands.h.
};

/// Sums over the visible keys, sinks included, for one output lane, o being the output there.
struct LaneSums {
  double spread = 0;       ///< sum w_j |v_j - o| growth_j, growth from the same RowBound.
  double magnitude = 0;    ///< sum w_j |v_j|
  double values = 0;       ///< sum (|v_j| + dv_j)
  double widest = 0;       ///< max |v_j - o|; read only if RowBound::needs_widest().
  double value_error = 0;  ///< sum w_j dv_j: values that the target may hold otherwise.
  /// max dv_j; read only if RowBound::needs_widest() and value_error is above 0.
  double widest_error = std::numeric_limits<double>::infinity();
};

/// The same for all lanes of a row at once, where values are held as they are.
struct RowSums {
  std::span<const double> spread, magnitude, values;  ///< [lane]
};

/// Relative error of a weight, as its logarithm, beyond which the first term of the bound is at its
/// cap in any case.
inline constexpr double kLargestExponent = 700.0;

/// Least growth of a weight: far below any arithmetic; keeps the ratio of two growths finite.
inline constexpr double kLeastGrowth = 0x1p-64;

/// Stages of a logit: scale * q.k, after softcap, after the bias.
enum class LogitStage { product, score, logit };

/// The bound of one row: what all its output lanes share.
class RowBound {
 public:
  /// `deviations` 0: the bound. Above 0: its expected size instead, where rounding errors are
  /// independent with mean zero, at so many standard deviations (3 to 5): k roundings count as
  /// deviations * sqrt(k). For reports, never to judge by.
  /// Source: Higham, Mary, A new approach to probabilistic rounding error analysis, SISC 41, 2019.
  explicit RowBound(const ArithmeticProfile& profile, double deviations = 0);

  /// Takes the row in; `exp_sum` is the sum of exp(s_j - max s) over `keys`; `softcap` 0 = off.
  /// \pre keys is not empty
  void set_row(std::int64_t head_size, std::span<const KeyTerm> keys, double exp_sum,
               double softcap = 0);

  /// growth_j = exp(Lambda_j) - 1: how much the error may stretch weight j. Above 0.
  std::span<const double> growth() const { return growth_; }

  /// Absolute error of one logit of the row up to a stage, before exponentials of base two.
  double logit_error(const KeyTerm& key, LogitStage stage) const;

  /// Absolute error of the normalised weight of key j.
  double weight_error(std::size_t j, double weight) const;

  /// Whether the weights' errors are so large that only the range of the values limits them.
  bool needs_widest() const { return total_growth_ > 0.5; }

  /// The bound of the lane whose output is `output`. May be infinite, never NaN.
  BoundTerms terms(const LaneSums& sums, double output) const;

  /// Whether totals() speaks of the row.
  bool is_plain() const;

  /// terms().total() of every lane, to the bit.
  /// \pre is_plain()
  void totals(const RowSums& sums, std::span<const double> outputs, std::span<double> totals) const;

  /// What part of this bound the bound of the same row in plain double arithmetic is at most, at
  /// every lane, where that takes all operands for exact; infinity where nothing is known. `finer`
  /// is a bound of double_profile() that no row need be set to. See bound_share.cpp.
  double share_of(RowBound& finer, std::int64_t head_size) const;

  /// Allowed error of the row's log-sum-exp, natural, where a target returns it in `type`.
  /// `lse` is max s + log(exp_sum). May be infinite, never NaN.
  double lse_error(double lse, ElementType type) const;

 private:
  double score_error(const KeyTerm& key, double error) const;
  void bound_logits(std::span<const KeyTerm> keys);
  void rank(std::span<const KeyTerm> keys);
  double lambda(const KeyTerm& key, std::size_t j) const;
  void set_losses(double keys, double exp_sum);
  void look_up(std::int64_t head_size, std::size_t keys);

  /// What rows of so many keys share.
  struct OfCount {
    bool known = false;
    RowErrors errors;
    double log_keys = 0;
  };

  ArithmeticProfile profile_;
  double deviations_;
  double u_;               // Roundoff of one operation.
  double spacing_;         // Absolute error of one operation among subnormal numbers.
  double weight_spacing_;  // The same of a weight stored for P.V.
  double two_roundings_;   // Relative error of two operations.
  double exp_log_error_;   // Of one exponential, in the logarithm.
  double cap_roundings_;   // Relative error of a score by the softcap's own roundings.
  double store_spacing_;   // Absolute error of an output among subnormal numbers.

  static constexpr std::size_t kKept = 256;  // Rows of so many keys are not remembered.

  std::int64_t head_size_ = -1;         // Of the rows that the two below are for.
  std::vector<OfCount> of_count_;       // [keys]
  mutable std::vector<double> shares_;  // [keys] what share_of() found, or -1.

  // Of the row at hand.
  RowErrors errors_;
  double softcap_ = 0;
  double log_keys_ = 0;
  std::vector<double> error_;        // Absolute error of each logit.
  std::vector<double> rescales_of_;  // Rescales that each key meets at most.
  std::vector<double> growth_;
  double top_ = 0;             // Largest logit.
  double highest_ = 0;         // No computed logit is above it.
  double lowest_maximum_ = 0;  // The maximum over the keys without sinks is not below it.
  double total_growth_ = 0;    // Phi = sum w_j growth_j
  double widest_lambda_ = 0;
  double lost_ = 0;           // Absolute error of one weight by underflow, over the row sum.
  double lost_products_ = 0;  // The same of all products and rescales of P.V.
  double lost_sum_ = 0;       // Relative error of the row sum by underflow.
  double rest_ = 1;           // 1 / (1 - Phi)
  double sum_rest_ = 1;       // The same of the errors of the row sum.
};

}  // namespace kvcheck::model
