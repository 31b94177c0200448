// Order statistics.
#include "kernels/bench/statistics.h"

#include <algorithm>
#include <limits>

namespace kvcheck::kernels::bench {

double quantile(std::span<const double> values, double p) {
  const double place = p * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  const double share = place - static_cast<double>(below);
  return values[below] + share * (values[above] - values[below]);
}

Quartiles quartiles(std::vector<double> values) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  if (values.empty()) return {0, kNone, kNone, kNone, kNone};
  std::sort(values.begin(), values.end());
  return {values.size(), quantile(values, .1), quantile(values, .25), quantile(values, .5),
          quantile(values, .75)};
}

bool is_noisy(const Quartiles& sample) {
  return sample.upper - sample.lower > kNoisyShare * sample.median;
}

std::vector<double> ratios(std::span<const double> a, std::span<const double> b) {
  std::vector<double> found;
  found.reserve(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) found.push_back(a[i] / b[i]);
  return found;
}

}  // namespace kvcheck::kernels::bench
