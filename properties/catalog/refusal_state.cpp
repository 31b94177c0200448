// target.refusal_keeps_state: what must be refused is refused, and changes nothing.
// Before one step of the case the target is asked to drop more tokens than there are, to take more
// tokens than the buffer has rows, and to load more rows than fit. It refuses each, and the rest of
// the case gives what it gave without: bit for bit where the target promises to repeat itself, else
// within twice the bound.
#include <algorithm>

#include <fmt/format.h>

#include "properties/catalog.h"
#include "properties/catalog/interposed.h"
#include "properties/compare_runs.h"
#include "properties/temptation.h"
#include "properties/told_target.h"
#include "properties/variant.h"

namespace kvcheck::properties {
namespace {

constexpr const char* kPromise = "repeat_bits";

/// out(asked for what must be refused) = out, and every question is refused.
Judgement judge(Case& c) {
  const Execution& execution = c.execution();
  if (!execution.complete) return Judgement::skipped(broke_off(c.scenario(), execution));
  const TensorChanges none;
  Temptation temptation(c.capabilities(), c.scenario(), c.timeline(), none);
  if (!temptation.place()) return Judgement::skipped("nothing comes after the first step");
  const std::size_t place = *temptation.place();
  Interposer interposer;
  interposer.before = [&](std::size_t step, kernels::Session& session) {
    temptation.ask(step, session);
  };
  const Execution run = execute_interposed(c, interposer);
  if (temptation.failure()) return *temptation.failure();
  if (temptation.asked() == 0) return Judgement::skipped("there is nothing that must be refused");
  if (!run.complete) {
    return Judgement::failed(Kind::influence, fmt::format("after refusals before step {} {}", place,
                                                          broke_off(c.scenario(), run)));
  }
  const OtherRun other{c.scenario(), c.timeline(), run};
  const bool bits = c.capabilities().has(kPromise);
  std::optional<Difference> difference;
  for (std::size_t i = place; i < execution.steps.size() && !difference; ++i) {
    if (c.timeline().steps()[i].defined) difference = compare_rows(c, other, i, i, bits);
  }
  if (!difference) difference = compare_outputs(c, other, bits, place);
  if (!difference) return {};
  return Judgement::failed(
      Kind::influence,
      fmt::format("after refusals before step {} the case gives something else: {}", place,
                  difference->sentence),
      difference->hint);
}

/// A target that answers from the scenario cannot be asked anything else.
bool turn(Case& c, std::vector<Variant>& ways, Draw&) {
  if (dynamic_cast<ToldTarget*>(&c.target()) != nullptr) return false;
  const bool asks = std::ranges::all_of(ways, [&](const Variant& way) {
    return Temptation::has_questions(c.capabilities(), way.scenario) &&
           Temptation::place_of(way.scenario, model::Timeline(way.scenario));
  });
  if (!asks) return false;
  for (Variant& way : ways) way.asks_refusals = true;
  return true;
}

std::string inapplicable(const model::Scenario& scenario, const kernels::Capabilities& target) {
  if (scenario.steps.size() < 2) return "the scenario has one step";
  return Temptation::has_questions(target, scenario) ? "" : "there is nothing that must be refused";
}

}  // namespace

Property refusal_state_property() {
  return {"target.refusal_keeps_state",
          "Asked for what cannot be, to drop more tokens than there are or to take or "
          "load more than the buffer has rows, the target refuses, and everything after "
          "it is as without the question.",
          "checks that come after the first change, wrapped lengths, buffers overrun, "
          "counters that move before the refusal",
          inapplicable,
          judge,
          "",
          {Axis::Run::together, turn, kPromise}};
}

}  // namespace kvcheck::properties
