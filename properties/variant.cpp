// Running and comparing variants.
#include "properties/variant.h"

#include <optional>
#include <utility>

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

Judgement judge_each(Case& c, std::size_t count, std::string none,
                     const std::function<Judgement(std::size_t)>& judge) {
  if (!c.execution().complete) return Judgement::skipped(broke_off(c.scenario(), c.execution()));
  bool passed = false;
  for (std::size_t i = 0; i < count; ++i) {
    Judgement judgement = judge(i);
    if (judgement.verdict == Verdict::failed) return judgement;
    if (judgement.verdict == Verdict::passed) {
      passed = true;
    } else {
      none = std::move(judgement.text);
    }
  }
  return passed ? Judgement{} : Judgement::skipped(std::move(none));
}

Judgement judge_variants(Case& c, const std::vector<Variant>& variants, Kind kind) {
  return judge_each(c, variants.size(), "there is no other way to run the scenario",
                    [&](std::size_t i) {
                      const std::string why = cannot_run(c.target(), variants[i].scenario);
                      return why.empty() ? compare(c, variants[i], kind) : Judgement::skipped(why);
                    });
}

}  // namespace kvcheck::properties
