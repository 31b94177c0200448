// One row of attention, written once for every arithmetic that the oracle uses.
//
// product_j = scale * q.k_j; score_j = softcap * tanh(product_j / softcap); logit_j = score_j +
// bias_j; weights = softmax over the logits and the sink, which has no value; output = sum of
// weights times values.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace kvcheck::model {

/// What one query sees. Pointers refer to rows of head_size (keys) or value_head_size (values).
struct AttentionRowInput {
  std::vector<double> query;                ///< [head_size]
  std::vector<double> query_low;            ///< What the doubles of `query` miss; empty = 0.
  std::vector<double> query_doubts;         ///< See operands.h; empty = exact.
  std::vector<const double*> keys;          ///< [n] visible keys, ascending positions.
  std::vector<const double*> values;        ///< [n]
  std::vector<const double*> key_doubts;    ///< [n] or empty: all exact.
  std::vector<const double*> value_doubts;  ///< [n] or empty.
  std::vector<double> biases;               ///< [n] what the mask adds.
  std::optional<double> scale;              ///< Empty = 1/sqrt(head_size).
  double softcap = 0;                       ///< 0 = off.
  bool cap_after_bias = false;              ///< A wrong order, for wrong_models.h.
  std::optional<double> sink;               ///< One more logit in the denominator.
};

/// Softmax weights of one row and what they come from.
template <class Real>
struct AttentionRow {
  std::vector<Real> products;  ///< [n] scale * q.k
  std::vector<Real> scores;    ///< [n] products after softcap.
  std::vector<Real> logits;    ///< [n] scores + biases.
  std::vector<Real> weights;   ///< [n] softmax(logits).
  Real sink_weight = 0;
  Real top = 0;      ///< Largest logit, the sink among them.
  Real exp_sum = 0;  ///< sum of exp(s_j - top), the sink among them.
};

template <class Real>
Real logit_scale(const AttentionRowInput& in) {
  using std::sqrt;
  return in.scale ? Real(*in.scale) : Real(1) / sqrt(Real(static_cast<double>(in.query.size())));
}

template <class Real>
Real capped(const AttentionRowInput& in, const Real& x) {
  using std::tanh;
  if (in.softcap == 0) return x;
  return Real(in.softcap) * Real(tanh(Real(x / in.softcap)));
}

/// Fills row.products, one rounding of Real after each operation.
template <class Real>
void multiply(const AttentionRowInput& in, AttentionRow<Real>& row) {
  const Real scale = logit_scale<Real>(in);
  std::vector<Real> query(in.query.begin(), in.query.end());
  for (std::size_t c = 0; c < in.query_low.size(); ++c) query[c] += in.query_low[c];
  row.products.resize(in.keys.size());
  for (std::size_t j = 0; j < in.keys.size(); ++j) {
    Real dot = 0;
    for (std::size_t c = 0; c < query.size(); ++c) dot += query[c] * Real(in.keys[j][c]);
    row.products[j] = scale * dot;
  }
}

/// Fills the rest from row.products.
template <class Real>
void weigh(const AttentionRowInput& in, AttentionRow<Real>& row) {
  using std::exp;
  const std::size_t keys = row.products.size();
  row.scores.resize(keys);
  row.logits.resize(keys);
  row.weights.resize(keys);
  row.top = in.sink ? Real(*in.sink) : Real(0);
  for (std::size_t j = 0; j < keys; ++j) {
    if (in.cap_after_bias) {
      row.logits[j] = capped<Real>(in, row.products[j] + Real(in.biases[j]));
      row.scores[j] = row.logits[j] - Real(in.biases[j]);
    } else {
      row.scores[j] = capped<Real>(in, row.products[j]);
      row.logits[j] = row.scores[j] + Real(in.biases[j]);
    }
    if ((j == 0 && !in.sink) || row.logits[j] > row.top) row.top = row.logits[j];
  }
  row.sink_weight = in.sink ? Real(exp(Real(Real(*in.sink) - row.top))) : Real(0);
  row.exp_sum = row.sink_weight;
  for (std::size_t j = 0; j < keys; ++j) {
    row.weights[j] = exp(Real(row.logits[j] - row.top));
    row.exp_sum += row.weights[j];
  }
  for (Real& weight : row.weights) weight /= row.exp_sum;
  row.sink_weight /= row.exp_sum;
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
