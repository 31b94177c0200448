// cache.staged: a step that needs a temporary buffer gives what steps without one give.
#include <algorithm>

#include <fmt/format.h>

#include "properties/catalog.h"
#include "properties/convert.h"
#include "properties/split.h"
#include "properties/variant.h"

namespace kvcheck::properties {
namespace {

constexpr const char* kPromise = "split_bits";

bool is_staged(const model::TimelineStep& step) {
  return std::ranges::any_of(step.entries, [](const auto& entry) { return entry.staged; });
}

bool stages(const model::Scenario& scenario) {
  return std::ranges::any_of(model::Timeline(scenario).steps(), is_staged);
}

/// The staged steps one token at a time, which evicts nothing that a query of its step reads.
Variant cut(const Variant& way) {
  const model::Timeline timeline(way.scenario);
  return one_token_at_a_time(way,
                             [&](std::size_t step) { return is_staged(timeline.steps()[step]); });
}

/// out(staged step) = out(the same tokens in single steps) = out(a buffer that never fills).
Judgement judge(Case& c) {
  std::vector<Variant> variants{cut(unchanged(c))};
  if (c.capabilities().has("capacity_bits") || !c.capabilities().has(kPromise)) {
    Variant roomy = unchanged(c);
    std::int64_t longest = 0;
    for (const auto& step : c.timeline().steps()) {
      for (const auto& entry : step.entries) longest = std::max(longest, entry.length);
    }
    roomy.scenario.cache.capacity = longest;
    roomy.words = fmt::format("with a capacity of {}, which needs no staging", longest);
    variants.push_back(std::move(roomy));
  }
  VariantJudging judging;
  judging.kind = Kind::split_difference;
  judging.bitwise = c.capabilities().has(kPromise);
  judging.rows_suffice = true;
  return judge_variants(c, variants, judging);
}

/// Other ways may have brought a cache that needs no staging already.
bool turn(Case& c, std::vector<Variant>& ways, Draw&) {
  std::vector<Variant> turned = ways;
  for (Variant& way : turned) {
    if (stages(way.scenario)) way = cut(way);
    if (!cannot_run(c.target(), way.scenario).empty()) return false;
  }
  ways = std::move(turned);
  return true;
}

std::string inapplicable(const model::Scenario& scenario, const kernels::Capabilities&) {
  if (scenario.cache.layout == model::LayoutKind::full) return "the cache evicts nothing";
  if (!scenario.causal) return "without a causal mask early queries see later tokens of their step";
  if (auto reason = fixed_data_reason(scenario); !reason.empty()) return reason;
  return stages(scenario) ? "" : "no step needs a temporary buffer";
}

}  // namespace

Property staged_property() {
  return {"cache.staged",
          "A step that evicts rows which its own queries read gives the same rows and outputs as "
          "steps and buffers that need no temporary rows: equal bits where the target promises "
          "them for any split, else within twice the bound.",
          "staging buffer of a wrong size, order or origin; write-back of the wrong rows; eviction "
          "before the read",
          inapplicable,
          judge,
          "",
          {Axis::Run::apart, turn, kPromise}};
}

}  // namespace kvcheck::properties
