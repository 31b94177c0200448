// What a run record says as a whole: the merged verdict and the bins of its error histograms.
#include "properties/run_record.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kvcheck::properties {

const std::vector<double>& error_bin_edges() {
  static const std::vector<double> edges = [] {
    std::vector<double> e = {0};
    for (double edge = 0x1p-10; edge <= 8; edge *= 2) e.push_back(edge);
    e.push_back(std::numeric_limits<double>::infinity());
    return e;
  }();
  return edges;
}

std::size_t error_bin(double ratio) {
  if (!(ratio > 0)) return 0;
  if (ratio > 8) return error_bin_edges().size() - 1;
  // ratio = part * 2^exponent with 1/2 <= part < 1: the least power of two that is no less.
  int exponent = 0;
  const double part = std::frexp(ratio, &exponent);
  return static_cast<std::size_t>(std::max(exponent - (part == 0.5 ? 1 : 0) + 11, 1));
}

Verdict RunRecord::verdict() const {
  // A run without any property has judged nothing, which is no pass.
  if (properties.empty()) return Verdict::skipped;
  Verdict merged = Verdict::passed;
  for (const PropertyRecord& property : properties) merged = merge(merged, property.status);
  return merged;
}

}  // namespace kvcheck::properties
