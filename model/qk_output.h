// The intermediate that an operator hands out beside its output: logits or probabilities.
//
// GroupQueryAttention (contract 1.4.10): qk_output 1 = logits after softcap and bias, 2 =
// probabilities; both 0 for keys out of reach of causality, window and length, -infinity where the
// bias alone hides a key from mode 1. Attention (contract 2.3): mode 0 raw products, 1 after
// softcap, both for every key; 2 after the bias, -infinity where hidden; 3 probabilities, 0 where
// hidden and in a row that sees nothing.
#pragma once

#include <cstdint>
#include <vector>

#include "model/error_bound.h"
#include "model/gather.h"

namespace kvcheck::model {

/// [batch][query_heads][queries][columns], dense; what entries with fewer queries leave over is 0
/// with an infinite bound, and so is a column of the buffer that no token fills.
struct QkExpected {
  std::int64_t queries = 0;
  std::int64_t columns = 0;    ///< Largest T; with nonpad_kv_seqlen the rows of the buffer.
  std::vector<double> values;  ///< In double; see Oracle for the exact outputs.
  std::vector<double> bound;   ///< Allowed error of the target, that of `values` included.
};

/// \pre scenario.qk_output is not none, step is a defined Append
QkExpected expected_qk(const Scenario& scenario, const Timeline& timeline,
                       const ArithmeticProfile& profile, Gatherer& gatherer, std::size_t step);

}  // namespace kvcheck::model
