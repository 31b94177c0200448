// One row of attention, written once for every arithmetic that the oracle uses.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace kvcheck::model {

/// What one query sees. Pointers refer to rows of head_size (keys) or value_head_size (values).
struct AttentionRowInput {
  std::vector<double> query;          ///< [head_size]
  std::vector<const double*> keys;    ///< [n] visible keys, ascending positions.
  std::vector<const double*> values;  ///< [n]
  std::vector<double> biases;         ///< [n] what the mask adds.
  std::optional<double> scale;        ///< Empty = 1/sqrt(head_size).
};

/// Softmax weights of one row and what they come from.
template <class Real>
struct AttentionRow {
  std::vector<Real> products;  ///< [n] scale * q.k
  std::vector<Real> weights;   ///< [n] softmax(products + biases); empty when n = 0.
  Real exp_sum = 0;            ///< sum of exp(s_j - max s)
};

template <class Real>
Real logit_scale(const AttentionRowInput& in) {
  using std::sqrt;
  return in.scale ? Real(*in.scale) : Real(1) / sqrt(Real(static_cast<double>(in.query.size())));
}

/// Fills row.products, one rounding of Real after each operation.
template <class Real>
void multiply(const AttentionRowInput& in, AttentionRow<Real>& row) {
  const Real scale = logit_scale<Real>(in);
  const std::vector<Real> query(in.query.begin(), in.query.end());
  row.products.resize(in.keys.size());
  for (std::size_t j = 0; j < in.keys.size(); ++j) {
    Real dot = 0;
    for (std::size_t c = 0; c < query.size(); ++c) dot += query[c] * Real(in.keys[j][c]);
    row.products[j] = scale * dot;
  }
}

/// Fills the weights from row.products.
template <class Real>
void weigh(const AttentionRowInput& in, AttentionRow<Real>& row) {
  using std::exp;
  row.weights.resize(row.products.size());
  Real top = 0;
  for (std::size_t j = 0; j < row.products.size(); ++j) {
    row.weights[j] = row.products[j] + Real(in.biases[j]);
    if (j == 0 || row.weights[j] > top) top = row.weights[j];
  }
  row.exp_sum = 0;
  for (Real& weight : row.weights) {
    weight = exp(Real(weight - top));
    row.exp_sum += weight;
  }
  for (Real& weight : row.weights) weight /= row.exp_sum;
}

/// Output lane: sum of weights times values; exactly 0 for a row that sees nothing.
template <class Real>
Real attend(const AttentionRowInput& in, const AttentionRow<Real>& row, std::size_t lane) {
  Real sum = 0;
  for (std::size_t j = 0; j < in.values.size(); ++j) {
    sum += row.weights[j] * Real(in.values[j][lane]);
  }
  return sum;
}

}  // namespace kvcheck::model
