// cache.unspecified_rows: what rows outside the resident range hold changes nothing.
#include <fmt/format.h>

#include "properties/catalog.h"
#include "properties/compare_runs.h"
#include "properties/convert.h"

namespace kvcheck::properties {
namespace {

/// A poison unlike the scenario's own; NaN only for targets that promise to bear it.
model::Poison other_poison(const Case& c) {
  if (bears_nan(c.capabilities(), c.scenario()) && c.scenario().poison != model::Poison::nan) {
    return model::Poison::nan;
  }
  if (!bears_huge(c.capabilities(), c.scenario())) {
    return c.scenario().poison == model::Poison::finite ? model::Poison::zero
                                                        : model::Poison::finite;
  }
  return c.scenario().poison == model::Poison::huge ? model::Poison::finite : model::Poison::huge;
}

Judgement judge(Case& c) {
  const Execution& execution = c.execution();
  if (!execution.complete) return Judgement::skipped(broke_off(c.scenario(), execution));
  model::Scenario poisoned = c.scenario();
  poisoned.poison = other_poison(c);
  const model::Timeline timeline(poisoned);
  const model::Fill fill(poisoned, timeline);
  const Execution run = execute(c.target(), poisoned, timeline, fill);
  if (!run.complete) return Judgement::skipped(broke_off(poisoned, run));
  const OtherRun other{poisoned, timeline, run};
  std::optional<Difference> difference;
  for (std::size_t i = 0; i < execution.steps.size() && !difference; ++i) {
    if (c.timeline().steps()[i].defined) difference = compare_rows(c, other, i, i);
  }
  if (!difference) difference = compare_outputs(c, other, true);
  if (!difference) {
    return shared_queries(c, other) > 0 ? Judgement{}
                                        : Judgement::skipped("the scenario asks no query");
  }
  return Judgement::failed(
      Kind::influence,
      fmt::format("filling rows outside the resident range with {} instead of {} changes the "
                  "result: {}",
                  to_string(poisoned.poison), to_string(c.scenario().poison), difference->sentence),
      difference->hint);
}

std::string inapplicable(const model::Scenario& scenario, const kernels::Capabilities& target) {
  if (!target.outputs) return "the target computes no outputs";
  const bool buffer = scenario.op == model::Operator::gqa || scenario.nonpad_kv_seqlen;
  return buffer ? "" : "a concatenated cache has no row outside the resident range";
}

}  // namespace

Property unspecified_rows_property() {
  return {"cache.unspecified_rows",
          "Rows outside the resident range and padding tokens have no influence: two runs that "
          "fill them differently give the same bits.",
          "capacity used for length, reads past the end, 0 * NaN, padding in the denominator",
          inapplicable, judge};
}

}  // namespace kvcheck::properties
