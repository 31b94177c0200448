// target.answers: what is claimed is taken, what must be refused is refused, nothing breaks.
#include <fmt/format.h>

#include "properties/catalog.h"

namespace kvcheck::properties {
namespace {

/// The inexact rollback at the end of the defined part, if the target was asked for it.
Judgement judge_inexact(const Case& c, const Execution& execution, std::size_t step) {
  const auto& state = c.timeline().steps()[step];
  shrinkers::Hint hint;
  hint.step = static_cast<std::int64_t>(step);
  switch (execution.steps[step].status) {
    case StepAnswer::Status::ok:
      return Judgement::failed(
          Kind::wrongly_accepted,
          fmt::format("took a rollback that it promises to refuse: {}", state.undefined_reason),
          hint);
    case StepAnswer::Status::refused:
      if (execution.refusal_kept_state) return {};
      return Judgement::failed(
          Kind::wrong_row, fmt::format("refused step {} but changed its rows while doing so", step),
          hint);
    default:
      return {};
  }
}

Judgement judge(Case& c) {
  const Execution& execution = c.execution();
  if (const auto problem = execution.first_problem()) {
    const bool at_open = *problem < 0;
    const auto step = static_cast<std::size_t>(at_open ? 0 : *problem);
    const StepAnswer& answer = at_open ? execution.open : execution.steps[step];
    shrinkers::Hint hint;
    hint.step = *problem;
    if (answer.status == StepAnswer::Status::broke) {
      return Judgement::failed(to_kind(answer.broke_as), broke_off(c.scenario(), execution), hint);
    }
    if (at_open || c.timeline().steps()[step].defined) {
      return Judgement::failed(Kind::wrongly_refused,
                               "refused what the contract allows and the target claims to take: " +
                                   broke_off(c.scenario(), execution),
                               hint);
    }
  }
  for (std::size_t i = 0; i < execution.steps.size(); ++i) {
    if (!c.timeline().steps()[i].defined) return judge_inexact(c, execution, i);
  }
  return {};
}

}  // namespace

Property answers_property() {
  return {
      "target.answers",
      "Every step that the contract allows and the target claims to take is answered, an "
      "inexact rollback is refused where the target promises so, and a refusal changes nothing.",
      "crashes, hangs, malformed answers, refusals of legal steps, unchecked rollbacks",
      [](const model::Scenario&, const kernels::Capabilities&) { return std::string(); }, judge};
}

}  // namespace kvcheck::properties
