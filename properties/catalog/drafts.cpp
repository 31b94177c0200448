// cache.drafts: tokens that are appended and rolled back leave no trace.
// The case is run with drafts of up to three tokens before its steps: rolled back at once, token by
// token, in two parts, or followed by a longer one; before the first step back to nothing. Each is
// only as deep as the layout can roll back exactly. Rows and outputs are those of the case.
#include <algorithm>

#include <fmt/format.h>

#include "model/counter_hash.h"
#include "properties/catalog.h"
#include "properties/catalog/drafted.h"
#include "properties/compare_runs.h"
#include "properties/convert.h"

namespace kvcheck::properties {
namespace {

Judgement judge(Case& c) {
  const Execution& execution = c.execution();
  if (!execution.complete) return Judgement::skipped(broke_off(c.scenario(), execution));
  const Drafted drafted =
      with_drafts(c.scenario(), c.timeline(),
                  c.scenario().batch == 1 || c.scenario().op == model::Operator::attention ||
                      c.capabilities().has("batched_chunks"));
  if (drafted.drafts == 0) return Judgement::skipped("no draft can be rolled back exactly here");
  if (const std::string why = cannot_run(c.target(), drafted.scenario); !why.empty()) {
    return Judgement::skipped(why);
  }
  const model::Timeline timeline(drafted.scenario);
  const model::Fill fill(drafted.scenario, timeline);
  const Execution run = execute(c.target(), drafted.scenario, timeline, fill);
  if (!run.complete) return Judgement::skipped(broke_off(drafted.scenario, run));
  const OtherRun other{drafted.scenario, timeline, run};
  const bool bits = c.capabilities().has("rollback_bits");
  std::optional<Difference> difference;
  for (std::size_t i = 0; i < drafted.places.size() && !difference; ++i) {
    if (!c.timeline().steps()[i].defined || !timeline.steps()[drafted.places[i]].defined) break;
    difference = compare_rows(c, other, i, drafted.places[i], bits);
  }
  if (!difference) difference = compare_outputs(c, other, bits);
  if (!difference) return {};
  Judgement judgement = Judgement::failed(
      Kind::rollback_difference,
      fmt::format("the case differs where drafts were rolled back before ({}): {}",
                  drafted.in_words(), difference->sentence),
      difference->hint);
  judgement.max_ratio = difference->ratio;
  return judgement;
}

std::string inapplicable(const model::Scenario& scenario, const kernels::Capabilities& target) {
  if (!target.has("rollback")) return "the target cannot roll back";
  if (scenario.fill.kind == model::FillKind::needles) return "needles point at what was dropped";
  return fixed_data_reason(scenario);
}

}  // namespace

Property drafts_property() {
  Property property{"cache.drafts",
                    "Appending drafts and rolling them back, at once, in parts, several times and "
                    "down to nothing, leaves rows and outputs as they are without them: outputs "
                    "bit for bit where that is promised, else within twice the bound.",
                    "stale rows, counters that drift with every rollback, snapshots of the state "
                    "one rollback too old, drafts longer than the ones before",
                    inapplicable, judge};
  property.one_in = 3;
  return property;
}

}  // namespace kvcheck::properties
