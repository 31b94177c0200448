// Running and comparing variants.
#include "properties/variant.h"

#include <optional>

#include <fmt/format.h>

#include "properties/compare_runs.h"

namespace kvcheck::properties {
namespace {

Judgement compare(Case& c, const Variant& variant, Kind kind) {
  const model::Timeline timeline(variant.scenario);
  const model::Fill fill(variant.scenario, timeline);
  const Execution run = execute(c.target(), variant.scenario, timeline, fill, variant.options);
  if (!run.complete) return Judgement::skipped(broke_off(variant.scenario, run));
  const OtherRun other{variant.scenario, timeline, run};
  std::optional<Difference> difference;
  for (std::size_t i = 0; i < c.scenario().steps.size() && !difference; ++i) {
    if (!c.timeline().steps()[i].defined || !timeline.steps()[i].defined) break;
    difference = compare_rows(c, other, i, i);
  }
  if (!difference) difference = compare_outputs(c, other, true);
  if (difference) {
    return Judgement::failed(
        kind, fmt::format("the same case {}: {}", variant.words, difference->sentence),
        difference->hint);
  }
  return shared_queries(c, other) > 0 ? Judgement{}
                                      : Judgement::skipped("the two runs share no query");
}

}  // namespace

Judgement judge_variants(Case& c, const std::vector<Variant>& variants, Kind kind) {
  if (!c.execution().complete) return Judgement::skipped(broke_off(c.scenario(), c.execution()));
  std::string reason = "there is no other way to run the scenario";
  bool compared = false;
  for (const Variant& variant : variants) {
    if (const std::string why = cannot_run(c.target(), variant.scenario); !why.empty()) {
      reason = why;
      continue;
    }
    const Judgement judgement = compare(c, variant, kind);
    if (judgement.verdict == Verdict::failed) return judgement;
    if (judgement.verdict == Verdict::passed)
      compared = true;
    else
      reason = judgement.text;
  }
  return compared ? Judgement{} : Judgement::skipped(reason);
}

}  // namespace kvcheck::properties
