// Statistics of times: quantiles, whether a row is noisy, slopes on logarithmic axes.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace kvcheck::kernels::bench {

/// Where a sample lies. NaN everywhere when it is empty.
struct Quartiles {
  std::size_t count = 0;
  double p10, lower, median, upper;
};

/// Quantile `p` in [0, 1] by linear interpolation between order statistics (R's type 7).
/// \pre values is sorted and not empty
double quantile(std::span<const double> values, double p);

Quartiles quartiles(std::vector<double> values);

/// An interquartile range above this share of the median marks a row as noisy.
inline constexpr double kNoisyShare = 0.15;
bool is_noisy(const Quartiles& sample);

/// Least-squares slope of log y over log x. NaN with fewer than two different x.
/// \pre all x and y are above 0
double log_log_slope(std::span<const std::pair<double, double>> points);

/// a[i] / b[i]. \pre as many of both
std::vector<double> ratios(std::span<const double> a, std::span<const double> b);

}  // namespace kvcheck::kernels::bench
