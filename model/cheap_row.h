// The oracle's cheap tier: one row in double, with the sums that the error bounds need.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "model/attention_row.h"
#include "model/error_bound.h"

namespace kvcheck::model {

class CheapRow {
 public:
  /// `profile` is the arithmetic of the target.
  explicit CheapRow(const ArithmeticProfile& profile);

  /// Takes a row in; its `lanes` outputs are then at hand. False where everything is as after the
  /// call before: the logits are alike, and the values are the same rows.
  /// \pre input.keys is not empty; values do not change between two calls (see forget_values)
  bool evaluate(const AttentionRowInput& input, std::size_t lanes);

  /// For rows whose memory changes between calls.
  void forget_values() { last_values_.clear(); }

  double output(std::size_t lane) const { return output_[lane]; }
  std::span<const double> outputs() const { return output_; }
  const AttentionRow<double>& row() const { return row_; }
  const RowBound& bound() const { return bound_; }
  /// The keys as the bound sees them, a sink at the end.
  const std::vector<KeyTerm>& terms() const { return terms_; }
  /// Allowed error of the target.
  BoundTerms bound(std::size_t lane) const;
  /// bound(lane).total() of every lane.
  void bounds(std::span<double> totals) const;
  /// Error bound of output() itself.
  double uncertainty(std::size_t lane);
  /// No lane's uncertainty is a larger part of its bound; infinity where nothing is known.
  double largest_doubt();

 private:
  /// What weights and bounds of a row follow from, beside values and counts.
  struct Logit {
    double product = 0, magnitude = 0, bias = 0, operand_error = 0;
  };
  struct Shared {
    double softcap = 0, sink = 0, has_sink = 0, cap_after_bias = 0, head_size = -1;
  };

  void multiply(const AttentionRowInput& input);
  void find_operand_errors(const AttentionRowInput& input);
  bool like_the_last(const AttentionRowInput& input);
  void weigh_terms(const AttentionRowInput& input);
  void set_own_bound();
  void sum(const AttentionRowInput& input);
  void sum_doubts(const AttentionRowInput& input);
  void find_widest(const AttentionRowInput& input);
  LaneSums sums(std::size_t lane) const;

  RowBound bound_;
  RowBound own_bound_;
  bool own_bound_is_set_ = false;
  double own_share_ = 0;  // Most that a weight's own error is of the target's.
  AttentionRow<double> row_;
  std::vector<double> magnitudes_;           // [n] sum |q_c k_c|
  std::vector<KeyTerm> terms_;               // [n], and the sink at the end.
  std::vector<Logit> logits_, last_logits_;  // Of this row and of the one before.
  Shared shared_;
  bool values_differ_ = false;  // Whether some value may be held otherwise.
  std::vector<const double*> last_values_, last_doubts_;
  std::vector<double> output_, magnitude_, values_, widest_, spread_;  // [lane]
  std::vector<double> value_error_, widest_error_;                     // [lane]
};

}  // namespace kvcheck::model
