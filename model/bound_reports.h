// What a report says beside the bound: a bound known before the data, and the bias of errors.
#pragma once

#include <cstdint>

#include "model/arithmetic_profile.h"

namespace kvcheck::model {

/// Sizes and largest magnitudes of a row, before there are data.
struct RowExtent {
  std::int64_t head_size = 1;
  std::int64_t keys = 1;
  double scale = 1;      ///< Logit scale.
  double query_max = 0;  ///< Largest |q|.
  double key_max = 0;    ///< Largest |k|.
  double value_max = 0;  ///< Largest |v|.
};

/// A-priori form of the bound, first-order: R (e_dot scale H max|q| max|k| + u ln n + (1+r) e_exp)
/// + (u_P + 2 e_sum + u + u_out) max|v|, with R = 2 max|v|. It uses that sum w_j (max s - s_j) is
/// at most the entropy of the weights, hence ln n. For rows without bias, softcap and sinks.
/// To choose sizes by and to explain, not to judge by.
double a_priori_bound(const ArithmeticProfile& profile, const RowExtent& row);

/// Mean of signed bound ratios (observed - exact) / bound, each in [-1, 1], to find errors that
/// lean to one side: truncating casts, a dropped half unit. A block is what its maker takes to be
/// independent of the others (one output row): its elements share weights, so they count as one.
class SignedMean {
 public:
  /// Takes in the mean ratio of one block, cut to [-1, 1].
  void add(double block_mean);

  std::int64_t blocks() const { return blocks_; }
  double mean() const { return blocks_ == 0 ? 0 : sum_ / static_cast<double>(blocks_); }

  /// What |mean| exceeds with at most the probability `false_alarm` if the blocks are independent
  /// and their errors have mean zero: sqrt(2 ln(2 / false_alarm) / m).
  /// Source: Hoeffding, Probability inequalities for sums of bounded random variables, 1963.
  double limit(double false_alarm) const;

  /// The same under the stronger assumption that each error is as likely as its opposite; far
  /// sharper where ratios are small: sqrt(2 ln(2 / false_alarm) sum x^2) / m, by Hoeffding for the
  /// signs given the magnitudes. Infinite without blocks.
  /// Source: Efron, Student's t-test under symmetry conditions, 1969.
  double symmetric_limit(double false_alarm) const;

 private:
  std::int64_t blocks_ = 0;
  double sum_ = 0;
  double squares_ = 0;
};

}  // namespace kvcheck::model
