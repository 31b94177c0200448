// What a run record says as a whole: the merged verdict and the bins of its error histograms.
#include "properties/run_record.h"

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

Verdict RunRecord::verdict() const {
  // A run without any property has judged nothing, which is no pass.
  if (properties.empty()) return Verdict::skipped;
  Verdict merged = Verdict::passed;
  for (const PropertyRecord& property : properties) merged = merge(merged, property.status);
  return merged;
}

}  // namespace kvcheck::properties
