// One attention row given as arrays: its exact output, and the sums that the bound needs.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "model/error_bound.h"

namespace kvcheck::model {

/// What one query sees. Keys are [n][head_size], values [n][lanes], row-major.
struct RowData {
  std::size_t head_size = 0;
  std::size_t lanes = 0;
  std::vector<double> query;
  std::vector<double> keys;
  std::vector<double> values;
  std::vector<double> biases;  ///< [n]
  double scale = 1;
  double softcap = 0;
  std::optional<double> sink;
  double key_scale = 1;       ///< Of a quantised cache: a key is an integer times this.
  double value_scale = 1;     ///< The same for values.
  std::vector<double> leans;  ///< [n] sign of the errors of exp and tanh; empty = drawn.

  std::size_t count() const { return biases.size(); }
};

/// Exact output to 64 bits, and what the bound reads of the row.
struct RowTruth {
  std::vector<long double> output;  ///< [lanes]
  std::vector<KeyTerm> terms;       ///< [n], the sink last.
  double exp_sum = 0;
  long double lse = 0;
};

/// The row's truth in `Real`.
template <class Real>
RowTruth evaluate(const RowData& row) {
  using std::abs;
  using std::exp;
  using std::log;
  using std::tanh;
  RowTruth out;
  std::vector<Real> logits;
  for (std::size_t j = 0; j < row.count(); ++j) {
    Real dot = 0;
    double magnitude = 0;
    for (std::size_t c = 0; c < row.head_size; ++c) {
      const double key = row.keys[j * row.head_size + c];
      dot += Real(row.query[c]) * Real(key);
      magnitude += std::abs(row.query[c] * key);
    }
    const Real product = dot * Real(row.scale);
    const Real score = row.softcap > 0
                           ? Real(Real(row.softcap) * tanh(Real(product / Real(row.softcap))))
                           : product;
    logits.push_back(score + Real(row.biases[j]));
    out.terms.push_back({.product = static_cast<double>(product),
                         .magnitude = std::abs(row.scale) * magnitude,
                         .bias = row.biases[j],
                         .score = static_cast<double>(score)});
  }
  if (row.sink) {
    logits.push_back(Real(*row.sink));
    out.terms.push_back({.product = *row.sink, .score = *row.sink});
  }
  const Real top = *std::max_element(logits.begin(), logits.end());
  Real sum = 0;
  for (Real& logit : logits) sum += logit = exp(Real(logit - top));
  std::vector<Real> output(row.lanes, Real(0));
  for (std::size_t j = 0; j < logits.size(); ++j) {
    const Real weight = logits[j] / sum;
    out.terms[j].weight = static_cast<double>(weight);
    if (j == row.count()) break;
    const double* values = row.values.data() + j * row.lanes;
    for (std::size_t c = 0; c < row.lanes; ++c) output[c] += weight * Real(values[c]);
  }
  for (const Real& x : output) out.output.push_back(static_cast<long double>(x));
  out.exp_sum = static_cast<double>(sum);
  out.lse = static_cast<long double>(Real(top + log(sum)));
  return out;
}

/// The allowed error of every lane; `value_error` is how far any value may be held from its own.
inline std::vector<BoundTerms> bounds_of(RowBound& bound, const RowData& row, const RowTruth& truth,
                                         double value_error = 0) {
  bound.set_row(static_cast<std::int64_t>(row.head_size), truth.terms, truth.exp_sum, row.softcap);
  const std::vector<double> output(truth.output.begin(), truth.output.end());
  // Arrays of their own, so that the loop over lanes runs side by side.
  std::vector<double> spread(row.lanes), magnitude(row.lanes), total(row.lanes), widest(row.lanes);
  for (std::size_t j = 0; j < row.count(); ++j) {
    const double* values = row.values.data() + j * row.lanes;
    const double weight = truth.terms[j].weight;
    const double stretch = weight * bound.growth()[j];
    for (std::size_t c = 0; c < row.lanes; ++c) {
      const double distance = std::abs(values[c] - output[c]);
      const double size = std::abs(values[c]);
      spread[c] += stretch * distance;
      magnitude[c] += weight * size;
      total[c] += size + value_error;
      widest[c] = distance > widest[c] ? distance : widest[c];
    }
  }
  const double sink = row.sink ? truth.terms.back().weight : 0;
  std::vector<BoundTerms> out;
  for (std::size_t c = 0; c < row.lanes; ++c) {
    LaneSums sums{.spread = spread[c],
                  .magnitude = magnitude[c],
                  .values = total[c],
                  .widest = widest[c],
                  .value_error = (1 - sink) * value_error,
                  .widest_error = value_error};
    if (row.sink) {
      sums.spread += sink * bound.growth().back() * std::abs(output[c]);
      sums.widest = std::max(sums.widest, std::abs(output[c]));
    }
    out.push_back(bound.terms(sums, output[c]));
  }
  return out;
}

/// |observed - exact| over its bound, for each lane.
inline std::vector<double> ratios_of(const std::vector<double>& observed, const RowTruth& truth,
                                     const std::vector<BoundTerms>& bounds) {
  std::vector<double> out;
  for (std::size_t c = 0; c < observed.size(); ++c) {
    const auto distance = static_cast<double>(std::abs(observed[c] - truth.output[c]));
    const double limit = bounds[c].total();
    out.push_back(distance == 0 || std::isinf(limit) ? 0 : distance / limit);
  }
  return out;
}

}  // namespace kvcheck::model
