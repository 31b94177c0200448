// Passes over one row; the loops over lanes run innermost, side by side.
#include "model/cheap_row.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "model/wide_loops.h"

namespace kvcheck::model {
namespace {

/// Sums side by side in place of one long chain of additions.
constexpr std::size_t kWays = 4;

KVCHECK_INTO_WIDE_LOOPS double total(const double (&parts)[kWays]) {
  return (parts[0] + parts[1]) + (parts[2] + parts[3]);
}

/// q.k and sum |q_c k_c| of every key.
KVCHECK_WIDE_LOOPS void find_dots(std::span<const double> query,
                                  std::span<const double* const> keys, double* dots,
                                  double* magnitudes) {
  const std::size_t lanes = query.size();
  for (const double* const key : keys) {
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
    *dots++ = total(dot);
    *magnitudes++ = total(magnitude);
  }
}

/// output[c] += weights[j] * values[j][c], key by key.
KVCHECK_WIDE_LOOPS void add_values(std::span<const double* const> values, const double* weights,
                                   std::size_t lanes, double* __restrict output) {
  for (const double* const value : values) {
    const double weight = *weights++;
    for (std::size_t c = 0; c < lanes; ++c) output[c] += weight * value[c];
  }
}

/// The sums over the same values that bounds follow from; see RowSums.
KVCHECK_WIDE_LOOPS void add_sizes(std::span<const double* const> values, const double* weights,
                                  const double* growth, std::span<const double> output,
                                  double* __restrict magnitude, double* __restrict sizes,
                                  double* __restrict spread) {
  for (const double* const value : values) {
    const double weight = *weights++;
    const double stretch = weight * *growth++;
    for (std::size_t c = 0; c < output.size(); ++c) {
      const double size = std::abs(value[c]);
      magnitude[c] += weight * size;
      sizes[c] += size;
      spread[c] += stretch * std::abs(value[c] - output[c]);
    }
  }
}

/// Whether all bits are the same, so that no difference counts as none.
template <class T>
bool same_bits(const T* a, const T* b, std::size_t count) {
  static_assert(sizeof(T) % sizeof(double) == 0);
  return std::memcmp(a, b, count * sizeof(T)) == 0;
}

}  // namespace

CheapRow::CheapRow(const ArithmeticProfile& profile)
    : bound_(profile), own_bound_(double_profile()) {}

bool CheapRow::evaluate(const AttentionRowInput& input, std::size_t lanes) {
  multiply(input);
  find_operand_errors(input);
  // Heads and queries whose logits are alike, all 0 in the extreme, share weights and bounds.
  const bool alike = like_the_last(input);
  if (!alike) {
    weigh(input, row_);
    weigh_terms(input);
    bound_.set_row(static_cast<std::int64_t>(input.query.size()), terms_, row_.exp_sum,
                   input.softcap);
    own_bound_is_set_ = false;
  }
  if (alike && output_.size() == lanes && input.values == last_values_ &&
      input.value_doubts == last_doubts_) {
    return false;
  }
  last_values_ = input.values;
  last_doubts_ = input.value_doubts;
  for (auto* sums : {&output_, &magnitude_, &values_, &spread_}) sums->assign(lanes, 0);
  sum(input);
  values_differ_ = !input.value_doubts.empty();
  if (values_differ_) sum_doubts(input);
  if (bound_.needs_widest()) find_widest(input);
  return true;
}

/// Notes the row for the next.
bool CheapRow::like_the_last(const AttentionRowInput& input) {
  const Shared shared{
      input.softcap, input.sink.value_or(0), static_cast<double>(input.sink.has_value()),
      static_cast<double>(input.cap_after_bias), static_cast<double>(input.query.size())};
  const bool same = logits_.size() == last_logits_.size() && same_bits(&shared, &shared_, 1) &&
                    same_bits(logits_.data(), last_logits_.data(), logits_.size());
  logits_.swap(last_logits_);
  shared_ = shared;
  return same;
}

void CheapRow::weigh_terms(const AttentionRowInput& input) {
  terms_.resize(last_logits_.size());
  for (std::size_t j = 0; j < terms_.size(); ++j) {
    const Logit& logit = last_logits_[j];
    terms_[j] = {logit.product,   logit.magnitude, logit.bias,
                 row_.weights[j], row_.scores[j],  logit.operand_error};
  }
  if (!input.sink) return;
  KeyTerm sink;
  sink.product = sink.score = *input.sink;
  sink.weight = row_.sink_weight;
  terms_.push_back(sink);
}

void CheapRow::find_operand_errors(const AttentionRowInput& input) {
  if (input.key_doubts.empty() && input.query_doubts.empty()) return;
  const std::size_t lanes = input.query.size();
  const double scale = std::abs(logit_scale<double>(input));
  for (std::size_t j = 0; j < input.keys.size(); ++j) {
    const double* key = input.keys[j];
    const double* doubts = input.key_doubts.empty() ? nullptr : input.key_doubts[j];
    double error = 0;
    for (std::size_t c = 0; c < lanes; ++c) {
      const double query_doubt = input.query_doubts.empty() ? 0 : input.query_doubts[c];
      const double key_doubt = doubts == nullptr ? 0 : doubts[c];
      error += std::abs(input.query[c]) * key_doubt + std::abs(key[c]) * query_doubt +
               query_doubt * key_doubt;
    }
    logits_[j].operand_error = scale * error;
  }
}

void CheapRow::multiply(const AttentionRowInput& input) {
  const double scale = logit_scale<double>(input);
  const std::size_t keys = input.keys.size();
  row_.products.resize(keys);
  magnitudes_.resize(keys);
  find_dots(input.query, input.keys, row_.products.data(), magnitudes_.data());
  logits_.resize(keys);
  for (std::size_t j = 0; j < keys; ++j) {
    row_.products[j] = scale * row_.products[j];
    logits_[j] = {row_.products[j], std::abs(scale) * magnitudes_[j], input.biases[j], 0};
  }
}

void CheapRow::sum(const AttentionRowInput& input) {
  add_values(input.values, row_.weights.data(), output_.size(), output_.data());
  add_sizes(input.values, row_.weights.data(), bound_.growth().data(), output_, magnitude_.data(),
            values_.data(), spread_.data());
  if (!input.sink) return;
  // Its value is 0 in every lane.
  const double stretch = row_.sink_weight * bound_.growth()[input.values.size()];
  for (std::size_t c = 0; c < output_.size(); ++c) spread_[c] += stretch * std::abs(output_[c]);
}

void CheapRow::sum_doubts(const AttentionRowInput& input) {
  value_error_.assign(output_.size(), 0);
  widest_error_.assign(output_.size(), 0);
  for (std::size_t j = 0; j < input.values.size(); ++j) {
    const double* doubts = input.value_doubts[j];
    if (doubts == nullptr) continue;
    for (std::size_t c = 0; c < output_.size(); ++c) {
      value_error_[c] += row_.weights[j] * doubts[c];
      values_[c] += doubts[c];
      widest_error_[c] = std::max(widest_error_[c], doubts[c]);
    }
  }
}

void CheapRow::find_widest(const AttentionRowInput& input) {
  widest_.assign(output_.size(), 0);
  if (input.sink) {
    for (std::size_t c = 0; c < output_.size(); ++c) widest_[c] = std::abs(output_[c]);
  }
  for (const double* value : input.values) {
    for (std::size_t c = 0; c < output_.size(); ++c) {
      widest_[c] = std::max(widest_[c], std::abs(value[c] - output_[c]));
    }
  }
}

LaneSums CheapRow::sums(std::size_t lane) const {
  LaneSums sums{spread_[lane], magnitude_[lane], values_[lane]};
  if (bound_.needs_widest()) sums.widest = widest_[lane];
  if (values_differ_) {
    sums.value_error = value_error_[lane];
    sums.widest_error = widest_error_[lane];
  }
  return sums;
}

BoundTerms CheapRow::bound(std::size_t lane) const {
  return bound_.terms(sums(lane), output_[lane]);
}

void CheapRow::bounds(std::span<double> totals) const {
  if (!values_differ_ && bound_.is_plain()) {
    bound_.totals({spread_, magnitude_, values_}, output_, totals);
    return;
  }
  for (std::size_t c = 0; c < totals.size(); ++c) totals[c] = bound(c).total();
}

void CheapRow::set_own_bound() {
  std::vector<KeyTerm> own = terms_;
  for (KeyTerm& term : own) term.operand_error = 0;
  // One lane more: the query itself may be a rounded sum.
  own_bound_.set_row(static_cast<std::int64_t>(shared_.head_size) + 1, own, row_.exp_sum,
                     shared_.softcap);
  own_share_ = 0;
  for (std::size_t j = 0; j < terms_.size(); ++j) {
    own_share_ = std::max(own_share_, own_bound_.growth()[j] / bound_.growth()[j]);
  }
  own_bound_is_set_ = true;
}

double CheapRow::uncertainty(std::size_t lane) {
  if (!own_bound_is_set_) set_own_bound();
  LaneSums own = sums(lane);
  own.spread *= own_share_;
  own.value_error = 0;
  return own_bound_.terms(own, output_[lane]).total();
}

double CheapRow::largest_doubt() {
  return bound_.share_of(own_bound_, static_cast<std::int64_t>(shared_.head_size) + 1);
}

}  // namespace kvcheck::model
