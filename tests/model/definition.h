// An output element straight from the definition of attention, in any arithmetic.
//
// Shares with the model the fill, the visible set and the stored keys and values, each of which has
// tests of its own; norm and rotary embedding of the query, logits, softmax and sum are written
// apart.
#pragma once

#include <cmath>
#include <vector>

#include "model/mask.h"
#include "model/operands.h"
#include "model/oracle.h"
#include "model/parameters.h"
#include "model/rotary.h"
#include "model/visibility.h"

namespace kvcheck::model {

/// The query of one row after norm and rotary embedding.
template <class Real>
std::vector<Real> query_by_definition(const Oracle& oracle, std::size_t step, std::int64_t entry,
                                      std::int64_t query, std::int64_t head) {
  using std::sqrt;
  const Scenario& s = oracle.scenario();
  std::vector<Real> row;
  for (std::int64_t c = 0; c < s.head_size; ++c) {
    row.push_back(Real(oracle.fill().query(step, entry, head, query, c)));
  }
  if (s.qk_norm) {
    Real mean = 0;
    for (const Real& x : row) mean += x * x;
    mean /= Real(static_cast<double>(row.size()));
    const Real root = sqrt(Real(mean + Real(s.qk_norm->epsilon)));
    for (std::size_t c = 0; c < row.size(); ++c) {
      row[c] *= Real(norm_weight(s, NormSide::query, static_cast<std::int64_t>(c)));
      row[c] /= root;
    }
  }
  if (s.rotary) {
    const Rotary rotary(s);
    const std::int64_t position = rotary_position(s, oracle.timeline(), step, entry, query);
    for (std::int64_t pair = 0; pair < rotary.pairs(); ++pair) {
      const auto [a, b] = rotary.lanes(pair);
      const Turn turn = rotary.turn(position, pair);
      const Real x = row[a];
      const Real y = row[b];
      row[a] = x * Real(turn.cos) - y * Real(turn.sin);
      row[b] = y * Real(turn.cos) + x * Real(turn.sin);
    }
  }
  return row;
}

template <class Real>
Real by_definition(const Oracle& oracle, Operands& operands, std::size_t step, std::int64_t entry,
                   std::int64_t query, std::int64_t head, std::int64_t lane) {
  using std::exp;
  using std::sqrt;
  using std::tanh;
  const Scenario& s = oracle.scenario();
  const Timeline& timeline = oracle.timeline();
  const std::int64_t kv = head * s.kv_heads / s.query_heads;
  const auto row = query_by_definition<Real>(oracle, step, entry, query, head);
  const Real scale =
      s.scale ? Real(*s.scale) : Real(Real(1) / sqrt(Real(static_cast<double>(s.head_size))));
  Real numerator = 0;
  Real denominator = 0;
  const auto seen = visible_positions(s, timeline, step, entry, head, query);
  for (const Position key : seen) {
    const Written written = timeline.written(step, entry, {&key, 1}).front();
    const TokenRows& stored = operands.stored({entry, {key, written.generation}, written.step});
    Real logit = 0;
    for (std::size_t c = 0; c < row.size(); ++c) {
      logit += row[c] * Real(stored.keys[static_cast<std::size_t>(kv) * row.size() + c]);
    }
    logit *= scale;
    if (s.softcap != 0) logit = Real(s.softcap) * Real(tanh(Real(logit / Real(s.softcap))));
    logit += Real(mask_cell(s, timeline, step, entry, head, query, key).bias);
    const Real weight = exp(logit);
    denominator += weight;
    numerator +=
        weight * Real(stored.values[static_cast<std::size_t>(kv * s.value_head_size + lane)]);
  }
  if (seen.empty()) return Real(0);
  if (s.head_sink) {
    denominator += exp(Real(sink_logit(s, head)));
  } else if (s.smooth_softmax) {
    denominator += Real(1);
  }
  return numerator / denominator;
}

}  // namespace kvcheck::model
