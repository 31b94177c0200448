// Whether a run reached the classes often enough, with so much certainty that an unlucky run does
// not fail.
#include "properties/coverage.h"

#include <cmath>
#include <map>

namespace kvcheck::properties {
namespace {

/// Standard deviations that a normal value exceeds on one side with a chance of 1e-9, and of
/// 1 / kCoverageCertainty therefore.
constexpr double kDeviations = 5.9978;

/// Shares of the situations that the contract is about, well under what the generator reaches on a
/// target that claims little; every class that is not listed needs one in a thousand.
const std::map<std::string, double>& required_shares() {
  static const std::map<std::string, double> shares = {
      {"buffer not yet full", 0.03},
      {"buffer exactly full", 0.03},
      {"one eviction", 0.03},
      {"many evictions", 0.005},
      {"capacity equals window", 0.02},
      {"step equals window", 0.01},
      {"step larger than window", 0.02},
      {"step larger than capacity", 0.01},
      {"length at the window's edge", 0.02},
      {"staged step", 0.01},
      {"single-token step with a past", 0.2},
      {"several query heads for a KV head", 0.05},
      {"several batch entries", 0.1},
      {"ragged lengths", 0.02},
      {"rollback, then append", 0.02},
      {"one query, several new keys, a past", 0.01},
      {"more queries than keys", 0.005},
      {"query that sees no key", 0.005},
  };
  return shares;
}

constexpr double kAnyShare = 0.001;

}  // namespace

double required_share(const std::string& name) {
  const auto found = required_shares().find(name);
  return found == required_shares().end() ? kAnyShare : found->second;
}

std::vector<bool> reachable_classes(const kernels::Capabilities& target) {
  std::vector<bool> reachable;
  for (const CoverageClass& item : coverage_classes()) reachable.push_back(item.reachable(target));
  return reachable;
}

ShareInterval wilson_interval(std::int64_t hits, std::int64_t cases, double deviations) {
  if (cases == 0) return {};
  const double n = static_cast<double>(cases), p = static_cast<double>(hits) / n;
  const double z = deviations, wide = 1 + z * z / n;
  const double middle = (p + z * z / (2 * n)) / wide;
  const double reach = z / wide * std::sqrt(p * (1 - p) / n + z * z / (4 * n * n));
  return {middle - reach, middle + reach};
}

std::string coverage_status(std::int64_t hits, std::int64_t cases, double required) {
  const ShareInterval share = wilson_interval(hits, cases, kDeviations);
  if (share.low >= kCoverageTolerance * required) return "met";
  return share.high < required ? "unmet" : "open";
}

void judge_coverage(RunRecord& record, bool focused) {
  for (CoverageRecord& entry : record.coverage) {
    entry.required = focused ? 0 : required_share(entry.name);
    entry.status = focused ? "" : coverage_status(entry.drawn_hits, entry.drawn, entry.required);
  }
}

}  // namespace kvcheck::properties
