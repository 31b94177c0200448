// Statistics of times: quantiles, and whether a row is noisy.
#pragma once

#include <cstddef>
#include <span>
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

/// a[i] / b[i]. \pre as many of both
std::vector<double> ratios(std::span<const double> a, std::span<const double> b);

}  // namespace kvcheck::kernels::bench
