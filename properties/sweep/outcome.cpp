// The properties that a sweep judges.
#include "properties/sweep/outcome.h"

#include <algorithm>
#include <cmath>
#include <exception>

#include "properties/convert.h"

namespace kvcheck::properties {
namespace {

const std::vector<Property>& judged_properties(bool visible_sets) {
  static const std::vector<Property> without = {answers_property(), resident_range_property(),
                                                values_property(), qk_output_property()};
  static const std::vector<Property> with = {answers_property(), resident_range_property(),
                                             visible_set_property(), values_property(),
                                             qk_output_property()};
  return visible_sets ? with : without;
}

}  // namespace

ConfigurationResult judge_configuration(Case& c, bool visible_sets) {
  ConfigurationResult result;
  result.outcome = SweepOutcome::agree;
  try {
    for (const Property& property : judged_properties(visible_sets)) {
      if (!property.inapplicable(c.scenario(), c.capabilities()).empty()) continue;
      Judgement judgement = property.judge(c);
      if (std::isfinite(judgement.max_ratio)) {
        result.ratio = std::max(result.ratio, judgement.max_ratio);
      }
      if (judgement.verdict != Verdict::failed) continue;
      result.outcome = SweepOutcome::diverge;
      result.property = &property;
      result.kind = judgement.kind;
      result.text = std::move(judgement.text);
      result.ratio = judgement.max_ratio;
      break;
    }
  } catch (const std::exception& error) {
    result.outcome = SweepOutcome::errored;
    result.text = error.what();
  }
  return result;
}

std::string refused_reason(const kernels::Capabilities& target, const model::Scenario& scenario) {
  const std::string missing = unsupported_reason(target, scenario);
  if (!missing.empty()) return "does not claim " + missing;
  if (target.has("checks_rollback")) return "";
  const model::Timeline timeline(scenario);
  const bool inexact = std::any_of(timeline.steps().begin(), timeline.steps().end(),
                                   [](const auto& step) { return !step.defined; });
  return inexact ? "does not promise to refuse an inexact rollback" : "";
}

}  // namespace kvcheck::properties
