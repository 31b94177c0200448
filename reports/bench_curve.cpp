// Three unknowns by their normal equations.
#include "reports/bench_curve.h"

#include <array>
#include <cmath>
#include <set>
#include <utility>

namespace kvcheck::reports {
namespace {

constexpr std::size_t kUnknowns = 3;
using Equations = std::array<std::array<double, kUnknowns + 1>, kUnknowns>;

/// Gauss-Jordan with row pivots; false where the matrix is singular.
bool solve(Equations& rows) {
  for (std::size_t i = 0; i < kUnknowns; ++i) {
    std::size_t pivot = i;
    for (std::size_t r = i + 1; r < kUnknowns; ++r) {
      if (std::abs(rows[r][i]) > std::abs(rows[pivot][i])) pivot = r;
    }
    std::swap(rows[i], rows[pivot]);
    if (!(std::abs(rows[i][i]) > 0)) return false;
    for (std::size_t r = 0; r < kUnknowns; ++r) {
      if (r == i) continue;
      const double factor = rows[r][i] / rows[i][i];
      for (std::size_t c = i; c <= kUnknowns; ++c) rows[r][c] -= factor * rows[i][c];
    }
  }
  for (std::size_t i = 0; i < kUnknowns; ++i) rows[i][kUnknowns] /= rows[i][i];
  return true;
}

}  // namespace

std::optional<CapacityCurve> fit_capacity_curve(std::span<const std::pair<double, double>> points) {
  std::set<double> periods;
  Equations rows{};
  for (const auto& [period, time] : points) {
    if (!(period > 0) || !(time > 0)) continue;
    periods.insert(period);
    const std::array<double, kUnknowns + 1> terms = {1 / time, period / 2 / time, 1 / period / time,
                                                     1};
    for (std::size_t r = 0; r < kUnknowns; ++r) {
      for (std::size_t c = 0; c <= kUnknowns; ++c) rows[r][c] += terms[r] * terms[c];
    }
  }
  if (periods.size() <= kUnknowns || !solve(rows)) return std::nullopt;
  CapacityCurve curve{rows[0][kUnknowns], rows[1][kUnknowns], rows[2][kUnknowns], std::nullopt};
  if (curve.slope > 0 && curve.shift > 0) curve.optimum = std::sqrt(2 * curve.shift / curve.slope);
  return curve;
}

}  // namespace kvcheck::reports
