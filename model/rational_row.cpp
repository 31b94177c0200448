// Means of equally weighted values.
#include "model/rational_row.h"

#include <algorithm>

namespace kvcheck::model {
namespace {

bool all_zero(const std::vector<double>& row) {
  return std::all_of(row.begin(), row.end(), [](double x) { return x == 0; });
}

/// The number of equal weights; 0 where they differ.
std::size_t equal_weights(const AttentionRowInput& row) {
  if (row.keys.size() == 1 && !row.sink) return 1;
  if (!all_zero(row.query) || !all_zero(row.query_low)) return 0;
  const double bias = row.biases.front();
  const bool equal =
      std::all_of(row.biases.begin(), row.biases.end(), [&](double b) { return b == bias; });
  if (!equal || row.cap_after_bias) return 0;
  if (!row.sink) return row.keys.size();
  return *row.sink == bias ? row.keys.size() + 1 : 0;
}

}  // namespace

std::optional<Rational> rational_output(const AttentionRowInput& row, std::size_t lane) {
  if (row.keys.empty()) return Rational(0);
  const std::size_t weights = equal_weights(row);
  if (weights == 0) return {};
  Rational sum = 0;
  for (const double* value : row.values) sum += Rational(value[lane]);
  return Rational(sum / static_cast<unsigned long long>(weights));
}

}  // namespace kvcheck::model
