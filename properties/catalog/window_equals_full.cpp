// cache.window_equals_full: a windowed cache gives what a full one with the same window gives.
#include "properties/catalog.h"
#include "properties/convert.h"
#include "properties/variant.h"

namespace kvcheck::properties {
namespace {

constexpr const char* kPromise = "window_bits";

void make_full(std::vector<Variant>& ways) {
  for (Variant& way : ways) {
    way.scenario.cache.layout = model::LayoutKind::full;
    way.scenario.cache.capacity = 0;
  }
}

/// out(block, W, C) = out(full, W): eviction only removes keys that no later query sees.
Judgement judge(Case& c) {
  std::vector<Variant> full{unchanged(c)};
  make_full(full);
  full.front().words = "with a full cache and the same window";
  return judge_variants(c, full, {});
}

bool turn(Case&, std::vector<Variant>& ways, Draw&) {
  make_full(ways);
  return true;
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
          kPromise,
          {Axis::Run::apart, turn, kPromise}};
}

}  // namespace kvcheck::properties
