// Bounds for reports.
#include "model/bound_reports.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "model/error_bound.h"

namespace kvcheck::model {

double a_priori_bound(const ArithmeticProfile& profile, const RowExtent& row) {
  const RowErrors errors = row_errors(profile, row.head_size, row.keys);
  const double product =
      std::abs(row.scale) * static_cast<double>(row.head_size) * row.query_max * row.key_max;
  const double spread = 2 * row.value_max;
  const double logits = (errors.dot + profile.logit_roundoff) * product;
  const double shift = operation_roundoff(profile) * std::log(static_cast<double>(row.keys));
  const double exponentials = (1 + errors.rescales) * profile.exp_error;
  return spread * (logits + shift + exponentials) +
         (errors.pv + errors.sum + errors.store) * row.value_max +
         subnormal_half_spacing(profile.output_type);
}

void SignedMean::add(double block_mean) {
  const double cut = std::clamp(block_mean, -1.0, 1.0);
  ++blocks_;
  sum_ += cut;
  squares_ += cut * cut;
}

double SignedMean::limit(double false_alarm) const {
  if (blocks_ == 0) return std::numeric_limits<double>::infinity();
  return std::sqrt(2 * std::log(2 / false_alarm) / static_cast<double>(blocks_));
}

double SignedMean::symmetric_limit(double false_alarm) const {
  if (blocks_ == 0) return std::numeric_limits<double>::infinity();
  return std::sqrt(2 * std::log(2 / false_alarm) * squares_) / static_cast<double>(blocks_);
}

}  // namespace kvcheck::model
