// Parameters as hashes of their coordinates.
#include "model/parameters.h"

#include "model/counter_hash.h"

namespace kvcheck::model {
namespace {

enum Purpose : std::uint64_t { kSink = 11, kNorm = 12, kScale = 13 };

/// In [low, low + 63/64 * width], in steps of width/64.
double between(std::uint64_t hash, double low, double width) {
  return low + width * static_cast<double>(hash % 64) / 64.0;
}

/// Scale that stores 1 exactly.
double power_of_two(QuantisationKind kind) {
  return kind == QuantisationKind::int8 ? 0x1p-5 : kind == QuantisationKind::int4 ? 0.5 : 0.25;
}

/// Scale that makes values beyond about 2.5 clamp (fp8: at its own range, which is wide).
double low_scale(QuantisationKind kind) {
  return kind == QuantisationKind::int8 ? 0.02 : kind == QuantisationKind::int4 ? 0.35 : 0.007;
}

}  // namespace

double sink_logit(const Scenario& scenario, std::int64_t query_head) {
  const std::uint64_t hash = counter_hash(scenario.fill.seed, kSink, query_head);
  const bool needles = scenario.fill.kind == FillKind::needles;
  return round_to(scenario.element_type,
                  scenario.fill.sink_logit + between(hash, needles ? 4 : -2, needles ? 2 : 4));
}

double norm_weight(const Scenario& scenario, NormSide side, std::int64_t lane) {
  const std::uint64_t hash = counter_hash(scenario.fill.seed, kNorm, static_cast<int>(side), lane);
  return round_to(scenario.element_type, between(hash, 0.75, 0.5));
}

float cache_scale(const Scenario& scenario, CacheSide side, std::int64_t kv_head,
                  std::int64_t lane) {
  const Quantisation& quantisation = scenario.cache.quantisation;
  if (is_position_fill(scenario.fill.kind) || scenario.fill.kind == FillKind::integers)
    return static_cast<float>(power_of_two(quantisation.kind));
  const bool per_channel = quantisation.per_channel;
  const std::uint64_t hash = counter_hash(scenario.fill.seed, kScale, static_cast<int>(side),
                                          per_channel ? kv_head : -1, per_channel ? lane : -1);
  const double low = low_scale(quantisation.kind);
  return static_cast<float>(between(hash, low, low / 2));
}

}  // namespace kvcheck::model
