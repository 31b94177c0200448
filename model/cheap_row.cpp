// Passes over one row; the loops over lanes run innermost, side by side.
#include "model/cheap_row.h"

#include <algorithm>
#include <cmath>

namespace kvcheck::model {
namespace {

/// Sums side by side in place of one long chain of additions.
constexpr std::size_t kWays = 4;

double total(const double (&parts)[kWays]) { return (parts[0] + parts[1]) + (parts[2] + parts[3]); }

}  // namespace

CheapRow::CheapRow(const ArithmeticProfile& profile)
    : bound_(profile), own_bound_(double_profile()) {}

void CheapRow::evaluate(const AttentionRowInput& input, std::size_t lanes) {
  multiply(input);
  weigh(input, row_);
  for (std::size_t j = 0; j < terms_.size(); ++j) terms_[j].weight = row_.weights[j];
  const auto head_size = static_cast<std::int64_t>(input.query.size());
  bound_.set_row(head_size, terms_, row_.exp_sum);
  own_bound_.set_row(head_size, terms_, row_.exp_sum);
  own_share_ = 0;
  for (std::size_t j = 0; j < terms_.size(); ++j) {
    own_share_ = std::max(own_share_, own_bound_.growth()[j] / bound_.growth()[j]);
  }
  for (auto* sums : {&output_, &magnitude_, &values_, &widest_, &spread_}) sums->assign(lanes, 0);
  sum(input);
}

void CheapRow::multiply(const AttentionRowInput& input) {
  const std::size_t lanes = input.query.size();
  const double scale = logit_scale<double>(input);
  const double* query = input.query.data();
  row_.products.resize(input.keys.size());
  terms_.resize(input.keys.size());
  for (std::size_t j = 0; j < input.keys.size(); ++j) {
    const double* key = input.keys[j];
    double dot[kWays] = {};
    double magnitude[kWays] = {};
    std::size_t c = 0;
    for (; c + kWays <= lanes; c += kWays) {
      for (std::size_t way = 0; way < kWays; ++way) {
        const double product = query[c + way] * key[c + way];
        dot[way] += product;
        magnitude[way] += std::abs(product);
      }
    }
    for (; c < lanes; ++c) {
      dot[0] += query[c] * key[c];
      magnitude[0] += std::abs(query[c] * key[c]);
    }
    row_.products[j] = scale * total(dot);
    terms_[j].product = row_.products[j];
    terms_[j].magnitude = std::abs(scale) * total(magnitude);
    terms_[j].bias = input.biases[j];
    terms_[j].score = row_.products[j];
  }
}

void CheapRow::sum(const AttentionRowInput& input) {
  const std::size_t lanes = output_.size();
  double* output = output_.data();
  double* magnitude = magnitude_.data();
  double* values = values_.data();
  double* spread = spread_.data();
  for (std::size_t j = 0; j < input.values.size(); ++j) {
    const double* value = input.values[j];
    const double weight = row_.weights[j];
    for (std::size_t c = 0; c < lanes; ++c) output[c] += weight * value[c];
  }
  for (std::size_t j = 0; j < input.values.size(); ++j) {
    const double* value = input.values[j];
    const double weight = row_.weights[j];
    const double stretch = weight * bound_.growth()[j];
    for (std::size_t c = 0; c < lanes; ++c) {
      const double size = std::abs(value[c]);
      magnitude[c] += weight * size;
      values[c] += size;
      spread[c] += stretch * std::abs(value[c] - output[c]);
    }
  }
  if (!bound_.needs_widest()) return;
  for (const double* value : input.values) {
    for (std::size_t c = 0; c < lanes; ++c) {
      widest_[c] = std::max(widest_[c], std::abs(value[c] - output[c]));
    }
  }
}

LaneSums CheapRow::sums(std::size_t lane) const {
  return {spread_[lane], magnitude_[lane], values_[lane], widest_[lane]};
}

BoundTerms CheapRow::bound(std::size_t lane) const {
  return bound_.terms(sums(lane), output_[lane]);
}

double CheapRow::uncertainty(std::size_t lane) const {
  LaneSums own = sums(lane);
  own.spread *= own_share_;
  return own_bound_.terms(own, output_[lane]).total();
}

}  // namespace kvcheck::model
