// The running error bound of attention, term by term.
#include "model/error_bound.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kvcheck::model {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Covers products of error terms, and the rounding of the bound's own arithmetic.
constexpr double kSecondOrder = 1.02;

/// Beyond this the first term of the bound is at its cap in any case.
constexpr double kLargestExponent = 700.0;

/// Far below any arithmetic; keeps the ratio of two growths finite.
constexpr double kLeastGrowth = 0x1p-64;

/// gamma_k = k u / (1 - k u): relative error of k roundings in any order.
double gamma(double count, double roundoff) {
  const double error = count * roundoff;
  return error < 1 ? error / (1 - error) : kInfinity;
}

/// exp(x) - 1, rounded up for small x, where a series is enough.
double growth_of(double x) {
  if (x < 0.05) return x * (1 + x * (0.5 + x * 0.2));
  return std::expm1(std::min(x, kLargestExponent));
}

/// Infinity times an exact zero is zero here: nothing to lose stays nothing.
double times(double error, double amount) { return amount == 0 ? 0 : error * amount; }

bool computes_in_double(const ArithmeticProfile& profile) {
  return profile.accumulator_roundoff < 0x1p-40;
}

/// Half the spacing of the subnormal numbers in which weights are stored before P.V.
double weight_half_spacing(const ArithmeticProfile& profile) {
  const double roundoff = profile.probability_roundoff;
  if (roundoff == 0) {
    return subnormal_half_spacing(computes_in_double(profile) ? ElementType::f64
                                                              : ElementType::f32);
  }
  if (roundoff >= unit_roundoff(ElementType::bf16)) {
    return subnormal_half_spacing(ElementType::bf16);
  }
  return subnormal_half_spacing(roundoff >= unit_roundoff(ElementType::f16) ? ElementType::f16
                                                                            : ElementType::f32);
}

double error_of_logit(const ArithmeticProfile& p, double dot_error, const KeyTerm& key) {
  const double product = std::abs(key.product);
  const double bias = std::abs(key.bias);
  double error = times(dot_error, key.magnitude) + p.logit_roundoff * product;
  if (bias != 0) error += (p.accumulator_roundoff + p.logit_roundoff) * (product + bias);
  if (p.base_two) error += 2 * p.accumulator_roundoff * (product + bias);
  return error;
}

}  // namespace

ArithmeticProfile double_profile() {
  ArithmeticProfile profile;
  profile.accumulator_roundoff = 0x1p-53;
  profile.exp_error = 0x1p-52;
  profile.output_type = ElementType::f64;
  return profile;
}

RowBound::RowBound(const ArithmeticProfile& profile)
    : profile_(profile),
      store_error_(profile.accumulator_roundoff + unit_roundoff(profile.output_type)),
      store_spacing_(subnormal_half_spacing(profile.output_type)),
      weight_spacing_(weight_half_spacing(profile)) {}

void RowBound::set_row(std::int64_t head_size, std::span<const KeyTerm> keys, double exp_sum,
                       double) {
  const double u = profile_.accumulator_roundoff;
  const auto count = static_cast<double>(keys.size());
  const double lanes = static_cast<double>(head_size);
  const double dot_error = dot_error_ = gamma(lanes + (profile_.scale_on_operands ? 4 : 2), u);
  // The maximum rises at most once per key after the first.
  double rescales = std::min(static_cast<double>(profile_.max_rescales), count - 1);
  double summands = count + rescales + 2;
  if (profile_.splits > 1) {
    rescales += 1;
    summands += std::min(static_cast<double>(profile_.splits), count);
  }

  double top = -kInfinity;
  for (const KeyTerm& key : keys) top = std::max(top, key.product + key.bias);
  growth_.resize(keys.size());
  total_growth_ = 0;
  for (std::size_t j = 0; j < keys.size(); ++j) {
    const KeyTerm& key = keys[j];
    const double lambda = error_of_logit(profile_, dot_error, key) +
                          u * (top - (key.product + key.bias)) +
                          (1 + rescales) * (profile_.exp_error + u);
    growth_[j] = std::max(growth_of(lambda), kLeastGrowth);
    total_growth_ += times(growth_[j], key.weight);
  }

  sum_error_ = gamma(summands, u);
  flushed_ = 0;
  if (profile_.exp_flushes) flushed_ = computes_in_double(profile_) ? 0x1p-1022 : 0x1p-126;
  // A two-pass kernel may normalise the weights before it stores them, and then loses the half
  // spacing of a weight that is already divided by the sum.
  const double divisor = profile_.max_rescales > 0 ? exp_sum : 1.0;
  flushed_ /= exp_sum;
  lost_ = weight_spacing_ / divisor + flushed_;
  flushed_ *= count;
}

double RowBound::logit_error(const KeyTerm& key, LogitStage stage) const {
  const double u = profile_.accumulator_roundoff + profile_.logit_roundoff;
  double error = times(dot_error_, key.magnitude) + key.operand_error +
                 profile_.logit_roundoff * std::abs(key.product);
  if (stage == LogitStage::product) return kSecondOrder * error;
  if (key.score != key.product) {
    error += u * std::abs(key.product) + (profile_.tanh_error + 2 * u) * std::abs(key.score);
  }
  if (stage == LogitStage::logit && key.bias != 0) {
    error += u * (std::abs(key.score) + std::abs(key.bias));
  }
  return kSecondOrder * error;
}

double RowBound::weight_error(std::size_t j, double weight, double total) const {
  if (total >= 1) return 1;
  const double moved = (growth_[j] + total) / (1 - total);
  return kSecondOrder * weight * (moved + sum_error_ + profile_.probability_roundoff) +
         weight_spacing_;
}

BoundTerms RowBound::terms(const LaneSums& sums, double output) const {
  const double size = std::abs(output);
  BoundTerms terms;
  // The perturbed weights are positive and normalised, so the output cannot leave the values'
  // range however large the errors are. Up to a growth of 1/2 that limit is out of reach.
  const double moved = total_growth_ < 1 ? sums.spread / (1 - total_growth_) : kInfinity;
  terms.weights = kSecondOrder * (needs_widest() ? std::min(moved, sums.widest) : moved);
  terms.sums = kSecondOrder * (times(profile_.probability_roundoff + sum_error_, sums.magnitude) +
                               times(sum_error_, size));
  terms.underflow = kSecondOrder * (lost_ * sums.values + flushed_ * size);
  terms.store = kSecondOrder * (store_error_ * size + store_spacing_);
  return terms;
}

}  // namespace kvcheck::model
