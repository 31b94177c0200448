// The oracle's exact tier: rows whose logits are all equal, in rational arithmetic.
#pragma once

#include <cstddef>
#include <optional>

#include <boost/multiprecision/cpp_int.hpp>

#include "model/attention_row.h"

namespace kvcheck::model {

using Rational = boost::multiprecision::cpp_rational;

/// Output lane of a row whose weights are all the same: a single key, or a query of zeros under
/// equal biases, where a sink may be one more key if its logit is that of the keys. Exact: the sum
/// of the values over their number; 0 for a row that sees nothing. Empty for any other row.
std::optional<Rational> rational_output(const AttentionRowInput& row, std::size_t lane);

}  // namespace kvcheck::model
