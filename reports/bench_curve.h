// The capacity curve: what a windowed step costs over the period of its evictions.
#pragma once

#include <optional>
#include <span>
#include <utility>

namespace kvcheck::reports {

/// t(G) = base + slope * G / 2 + shift / G, with G = C - W + 1 steps between two moves of the rows.
/// A step reads G / 2 rows more on average, and bears its share of one move.
struct CapacityCurve {
  double base = 0;
  double slope = 0;  ///< Milliseconds for one more resident row.
  double shift = 0;  ///< Milliseconds of one move.
  /// sqrt(2 * shift / slope). Empty where the time does not grow with the rows or with the moves.
  std::optional<double> optimum;
  double at(double period) const { return base + slope * period / 2 + shift / period; }
};

/// Least squares over points (G, milliseconds), relative to each time. Empty with fewer than four
/// different periods.
std::optional<CapacityCurve> fit_capacity_curve(std::span<const std::pair<double, double>> points);

}  // namespace kvcheck::reports
