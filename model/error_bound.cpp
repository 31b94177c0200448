// The running error bound of attention, term by term.
#include "model/error_bound.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace kvcheck::model {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Covers the rounding of the bound's own arithmetic and of the weights and sums it is given, as
/// long as double is right to this.
constexpr double kOwnArithmetic = 1 + 0x1p-10;

/// exp(x) - 1, rounded up for small x, where a series is enough.
double growth_of(double x) {
  if (x < 0.05) return x * (1 + x * (0.5 + x * 0.2));
  return std::expm1(std::min(x, kLargestExponent));
}

/// Infinity times an exact zero is zero here: nothing to lose stays nothing.
double times(double error, double amount) {
  const double product = error * amount;
  if (!std::isnan(product)) return product;
  return amount == 0 || error == 0 ? 0 : product;
}

/// 1 / (1 - error), infinite from 1 on.
double inverse_rest(double error) { return error < 1 ? 1 / (1 - error) : kInfinity; }

/// Most that a factor 1 + d with |d| <= error moves a logarithm.
double log_error(double error) { return error < 1 ? -std::log1p(-error) : kInfinity; }

/// The type that such a roundoff stands for.
ElementType type_of(double roundoff) {
  if (roundoff < 0x1p-40) return ElementType::f64;
  if (roundoff >= unit_roundoff(ElementType::bf16)) return ElementType::bf16;
  return roundoff >= unit_roundoff(ElementType::f16) ? ElementType::f16 : ElementType::f32;
}

double least_normal(ElementType type) {
  switch (type) {
    case ElementType::f64:
      return 0x1p-1022;
    case ElementType::f16:
      return 0x1p-14;
    case ElementType::f32:
    case ElementType::bf16:
      break;
  }
  return 0x1p-126;
}

/// Absolute error of one operation whose result is a subnormal number of `type`.
double spacing_of(const ArithmeticProfile& profile, ElementType type) {
  if (profile.exp_flushes) return least_normal(type);
  return subnormal_half_spacing(type) * (profile.truncates ? 2 : 1);
}

double weight_spacing_of(const ArithmeticProfile& profile) {
  const bool narrower = profile.probability_roundoff > 0;
  const ElementType type =
      type_of(narrower ? profile.probability_roundoff : profile.accumulator_roundoff);
  return narrower ? subnormal_half_spacing(type) : spacing_of(profile, type);
}

/// Largest slope of softcap * tanh(x / softcap) within `error` of `product`.
double softcap_slope(double product, double error, double softcap) {
  const double nearest = std::max(0.0, std::abs(product) - error);
  const double cosh = std::cosh(nearest / softcap);
  return std::min(1.0, 1 / (cosh * cosh));
}

}  // namespace

RowBound::RowBound(const ArithmeticProfile& profile, double deviations)
    : profile_(profile),
      deviations_(deviations),
      u_(operation_roundoff(profile)),
      spacing_(spacing_of(profile, type_of(profile.accumulator_roundoff))),
      weight_spacing_(weight_spacing_of(profile)),
      two_roundings_(compound_roundoff(2, u_)),
      exp_log_error_(log_error(profile.exp_error)),
      cap_roundings_((1 + compound_roundoff(1, u_)) * (1 + profile.tanh_error) *
                         (1 + profile.logit_roundoff) -
                     1),
      store_spacing_(subnormal_half_spacing(profile.output_type)) {}

double RowBound::score_error(const KeyTerm& key, double error) const {
  // A product that is exactly 0 stays so, and a sink is not capped.
  if (softcap_ == 0 || (key.magnitude == 0 && key.operand_error == 0)) return error;
  error += times(two_roundings_, std::abs(key.product) + error);
  error = times(softcap_slope(key.product, error, softcap_), error);
  return error + times(cap_roundings_, std::abs(key.score) + error) + (softcap_ + 1) * spacing_;
}

double RowBound::logit_error(const KeyTerm& key, LogitStage stage) const {
  const ArithmeticProfile& p = profile_;
  double error = times(errors_.dot, key.magnitude + key.operand_error) + key.operand_error;
  if (key.magnitude != 0) error += errors_.dot_roundings * spacing_;
  error += times(p.logit_roundoff, std::abs(key.product) + error);
  if (stage == LogitStage::product) return error;
  error = score_error(key, error);
  if (stage == LogitStage::score || key.bias == 0) return error;
  return error + times(u_ + p.logit_roundoff, std::abs(key.score + key.bias) + error);
}

double RowBound::weight_error(std::size_t j, double weight) const {
  const double rest = rest_ * sum_rest_;
  const double moved = times(rest, growth_[j] + total_growth_ + errors_.sum + lost_sum_);
  // Nothing is known of a weight then, one that is 0 in double included.
  if (!std::isfinite(moved)) return 1;
  // A division, or a reciprocal and a product.
  const double stored = profile_.probability_roundoff + two_roundings_;
  const double error = times(moved, weight) + times(stored, weight * (1 + moved)) + lost_;
  return std::min(error * kOwnArithmetic, 1.0);
}

void RowBound::bound_logits(std::span<const KeyTerm> keys) {
  error_.resize(keys.size());
  top_ = highest_ = lowest_maximum_ = -kInfinity;
  for (std::size_t j = 0; j < keys.size(); ++j) {
    const double logit = keys[j].score + keys[j].bias;
    error_[j] = logit_error(keys[j], LogitStage::logit);
    if (profile_.base_two) {
      error_[j] +=
          times(two_roundings_, std::abs(keys[j].score) + std::abs(keys[j].bias) + error_[j]);
    }
    top_ = std::max(top_, logit);
    highest_ = std::max(highest_, logit + error_[j]);
    if (keys[j].magnitude != 0) lowest_maximum_ = std::max(lowest_maximum_, logit - error_[j]);
  }
  if (lowest_maximum_ == -kInfinity) lowest_maximum_ = kInfinity;
}

/// Every rescale that key j meets is by a larger logit than the one before, so there are no more
/// of them than keys that may exceed key j, in whatever order the keys come. Logits are sorted
/// into buckets, the highest first.
void RowBound::rank(std::span<const KeyTerm> keys) {
  rescales_of_.assign(keys.size(), errors_.rescales);
  if (errors_.rescales == 0) return;
  constexpr double kBucketsPerUnit = 16;
  constexpr std::size_t kBuckets = 512;
  const auto bucket = [&](double logit) {
    const double at = (highest_ - logit) * kBucketsPerUnit;
    return at < static_cast<double>(kBuckets) ? static_cast<std::size_t>(std::max(at, 0.0))
                                              : kBuckets;
  };
  const auto limit = [&](auto&& in_reach) {
    for (std::size_t j = 0; j < keys.size(); ++j) {
      const double least = keys[j].score + keys[j].bias - error_[j];
      const std::size_t at = bucket(least);
      if (at < kBuckets) rescales_of_[j] = std::min(errors_.rescales, in_reach(at) - 1);
      if (least >= highest_) rescales_of_[j] = 0;
    }
  };
  const auto bucket_of = [&](std::size_t j) {
    return bucket(keys[j].score + keys[j].bias + error_[j]);
  };
  constexpr std::size_t kFew = 32;
  if (errors_.rescales == 1) {  // Only a key that none other may exceed meets none.
    std::size_t least = kBuckets, second = kBuckets;
    for (std::size_t j = 0; j < keys.size(); ++j) {
      const std::size_t at = bucket_of(j);
      second = std::min(second, std::max(least, at));
      least = std::min(least, at);
    }
    limit([&](std::size_t at) { return second <= at ? 2.0 : 1.0; });
    return;
  }
  if (keys.size() <= kFew) {  // Counted one by one, which spares the pass over all buckets.
    std::array<std::size_t, kFew> buckets{};
    for (std::size_t j = 0; j < keys.size(); ++j) buckets[j] = bucket_of(j);
    limit([&](std::size_t at) {
      double count = 0;
      for (std::size_t j = 0; j < keys.size(); ++j) count += buckets[j] <= at ? 1 : 0;
      return count;
    });
    return;
  }
  std::array<double, kBuckets> above{};
  for (std::size_t j = 0; j < keys.size(); ++j) {
    const std::size_t at = bucket_of(j);
    if (at < kBuckets) ++above[at];
  }
  std::partial_sum(above.begin(), above.end(), above.begin());
  limit([&](std::size_t at) { return above[at]; });
}

double RowBound::lambda(const KeyTerm& key, std::size_t j) const {
  const ArithmeticProfile& p = profile_;
  const double logit = key.score + key.bias;
  const double error = error_[j];
  double gap = highest_ - logit + error;
  // A sink may be left out of the maximum that is subtracted.
  if (key.magnitude == 0) gap = std::max(gap, logit + error - lowest_maximum_);
  const double exponentials = effective_count(1 + rescales_of_[j], deviations_);
  double out = error + times(u_, gap) + exponentials * exp_log_error_;
  if (p.sums_stored_weights) out += log_error(p.probability_roundoff);
  // Both the maximum of a tile and that of a split lie between the key's logit and the highest.
  const double maximum = std::max(std::abs(logit) + error, std::abs(highest_));
  // The maximum is rounded once where it is subtracted, and every rise of it once more.
  if (p.fused_shift) out += times(u_, maximum + gap);
  if (p.merges_by_lse) {
    out += (p.base_two ? 3 : 1) * u_ * (maximum + log_keys_) + u_ * log_keys_ +
           p.exp_error * log_keys_ + exp_log_error_;
  }
  return out;
}

void RowBound::set_losses(double keys, double exp_sum) {
  // The largest logit has the weight 1 before normalisation, so the computed sum is not below it.
  const double largest = profile_.fused_shift ? std::exp(-u_ * std::abs(highest_)) : 1.0;
  const double sum = std::max(largest, total_growth_ < 1 ? exp_sum * (1 - total_growth_) : 0.0);
  // A two-pass kernel may normalise the weights before it stores them, and then loses the spacing
  // of a weight that is already divided by the sum.
  const double divisor = errors_.normalises ? 1.0 : sum;
  const bool stores = errors_.normalises || profile_.probability_roundoff > 0;
  const double stored = stores ? weight_spacing_ / divisor : 0;
  const double made = spacing_ / sum;
  // What exp has flushed cannot be lost again.
  const bool once = profile_.exp_flushes && profile_.probability_roundoff == 0;
  lost_ = once ? std::max(stored, made) : stored + made;
  lost_products_ = (keys + errors_.rescales) * spacing_ / divisor;
  lost_sum_ = (keys + errors_.rescales) * spacing_ / sum;
  if (profile_.sums_stored_weights) lost_sum_ += keys * weight_spacing_ / sum;
}

/// Fills errors_ and log_keys_, which depend on the two counts alone.
void RowBound::look_up(std::int64_t head_size, std::size_t keys) {
  const auto find = [&](OfCount& out) {
    out.known = true;
    out.errors = row_errors(profile_, head_size, static_cast<std::int64_t>(keys), deviations_);
    out.log_keys = std::log(static_cast<double>(keys));
  };
  if (head_size != head_size_) {
    of_count_.clear();
    shares_.clear();
  }
  head_size_ = head_size;
  OfCount found;
  OfCount* of_count = &found;
  if (keys < kKept) {
    if (of_count_.size() <= keys) of_count_.resize(keys + 1);
    of_count = &of_count_[keys];
  }
  if (!of_count->known) find(*of_count);
  errors_ = of_count->errors;
  log_keys_ = of_count->log_keys;
}

void RowBound::set_row(std::int64_t head_size, std::span<const KeyTerm> keys, double exp_sum,
                       double softcap) {
  look_up(head_size, keys.size());
  softcap_ = softcap;
  bound_logits(keys);
  rank(keys);
  growth_.resize(keys.size());
  total_growth_ = widest_lambda_ = 0;
  for (std::size_t j = 0; j < keys.size(); ++j) {
    const double error = lambda(keys[j], j);
    widest_lambda_ = std::max(widest_lambda_, error);
    growth_[j] = std::max(growth_of(error), kLeastGrowth);
    total_growth_ += times(growth_[j], keys[j].weight);
  }
  set_losses(static_cast<double>(keys.size()), exp_sum);
  rest_ = inverse_rest(total_growth_);
  sum_rest_ = inverse_rest(errors_.sum + lost_sum_);
}

BoundTerms RowBound::terms(const LaneSums& sums, double output) const {
  const double size = std::abs(output);
  const double rest = rest_;
  const double sum_rest = sum_rest_;
  BoundTerms terms;
  // The perturbed weights are positive and normalised, so the output cannot leave the values'
  // range however large the errors are. Up to a growth of 1/2 that limit is out of reach.
  terms.weights = times(rest, sums.spread);
  if (sums.value_error != 0) {
    terms.operands = times((1 + growth_of(widest_lambda_)) * rest, sums.value_error);
  }
  double magnitude = times(rest, sums.magnitude + sums.spread + total_growth_ * size);
  if (needs_widest()) {
    terms.weights = std::min(terms.weights, sums.widest);
    if (sums.value_error > 0) terms.operands = std::min(terms.operands, sums.widest_error);
    magnitude = std::min(magnitude, size + sums.widest);
  }
  const double reached = size + terms.weights + terms.operands;
  terms.sums =
      times(sum_rest, times(errors_.pv, magnitude + terms.operands) + times(errors_.sum, reached));
  const double products = sums.values == 0 ? 0 : lost_products_;
  terms.underflow = times(sum_rest, lost_ * sums.values + products + times(lost_sum_, reached));
  const double stored = reached + terms.sums + terms.underflow;
  terms.store = times(errors_.store, stored) + store_spacing_;
  for (double* term :
       {&terms.weights, &terms.sums, &terms.underflow, &terms.store, &terms.operands}) {
    *term *= kOwnArithmetic;
  }
  return terms;
}

bool RowBound::is_plain() const {
  return !needs_widest() && std::isfinite(rest_) && std::isfinite(sum_rest_) &&
         std::isfinite(errors_.pv) && std::isfinite(errors_.sum) && std::isfinite(errors_.store) &&
         std::isfinite(lost_) && std::isfinite(lost_products_) && std::isfinite(lost_sum_);
}

void RowBound::totals(const RowSums& sums, std::span<const double> outputs,
                      std::span<double> totals) const {
  for (std::size_t c = 0; c < outputs.size(); ++c) {
    const double size = std::abs(outputs[c]);
    const double weights = rest_ * sums.spread[c];
    const double magnitude = rest_ * (sums.magnitude[c] + sums.spread[c] + total_growth_ * size);
    const double reached = size + weights;
    const double summed = sum_rest_ * (errors_.pv * magnitude + errors_.sum * reached);
    const double products = sums.values[c] == 0 ? 0 : lost_products_;
    const double underflow = sum_rest_ * (lost_ * sums.values[c] + products + lost_sum_ * reached);
    const double store = errors_.store * (reached + summed + underflow) + store_spacing_;
    totals[c] = weights * kOwnArithmetic + summed * kOwnArithmetic + underflow * kOwnArithmetic +
                store * kOwnArithmetic;
  }
  // Infinite sums: what is nothing times that.
  for (std::size_t c = 0; c < outputs.size(); ++c) {
    if (std::isfinite(totals[c])) continue;
    totals[c] = terms({sums.spread[c], sums.magnitude[c], sums.values[c]}, outputs[c]).total();
  }
}

double RowBound::lse_error(double lse, ElementType type) const {
  const ArithmeticProfile& p = profile_;
  // |log sum w e^lambda| is below the largest |lambda|, and below -log(1 - Phi).
  const double stretch = std::min(log_error(total_growth_), widest_lambda_);
  const double sum = log_error(errors_.sum + lost_sum_);
  // A sink outside the maximum stays in the logarithm.
  const double log = std::max(0.0, lse - std::min(top_, lowest_maximum_)) + stretch + sum;
  const double factors = p.base_two ? two_roundings_ : 0;
  double error = stretch + sum + times(p.exp_error + factors, log);
  if (p.fused_shift) error += times(u_, std::abs(highest_));
  error += (compound_roundoff(1, u_) + factors) * (std::abs(lse) + error);
  error += times(store_roundoff(p, type), std::abs(lse) + error);
  return (error + subnormal_half_spacing(type)) * kOwnArithmetic;
}

}  // namespace kvcheck::model
