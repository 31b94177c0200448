// cache.window_equals_full: a windowed cache gives what a full one with the same window gives.
#include "properties/catalog.h"
#include "properties/convert.h"
#include "properties/variant.h"

namespace kvcheck::properties {
namespace {

constexpr const char* kPromise = "window_bits";

/// out(block, W, C) = out(full, W): eviction only removes keys that no later query sees.
Judgement judge(Case& c) {
  Variant full{c.scenario(), {}, "with a full cache and the same window"};
  full.scenario.cache.layout = model::LayoutKind::full;
  full.scenario.cache.capacity = 0;
  return judge_variants(c, {full}, Kind::bits_difference);
}

std::string inapplicable(const model::Scenario& scenario, const kernels::Capabilities& target) {
  if (auto reason = unpromised(target, kPromise); !reason.empty()) return reason;
  return scenario.cache.layout == model::LayoutKind::full ? "the cache evicts nothing"
                                                          : fixed_data_reason(scenario);
}

}  // namespace

Property window_equals_full_property() {
  return {"cache.window_equals_full",
          "A windowed cache gives the same bits as a full cache with the same window, in every "
          "output and in the rows that both hold.",
          "sums whose order depends on rows, tiles that start at the oldest row, staging unlike "
          "the cache",
          inapplicable,
          judge,
          kPromise};
}

}  // namespace kvcheck::properties
