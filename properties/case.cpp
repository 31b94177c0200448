// Lazy execution of a case.
#include "properties/case.h"

#include <fmt/format.h>

#include "properties/bundle.h"
#include "properties/convert.h"
#include "properties/digit_check.h"

namespace kvcheck::properties {

Case::Case(kernels::Target& target, const model::Scenario& scenario, Mode mode)
    : target_(target),
      oracle_(scenario, arithmetic_profile(target.capabilities(), scenario)),
      mode_(mode),
      rows_(scenario) {
  if (rows_.fit(scenario)) oracle_.share_rows(rows_);
}

Case::~Case() = default;

Bundle& Case::bundle() {
  if (!bundle_) bundle_ = std::make_unique<Bundle>(*this);
  return *bundle_;
}

DigitLaunches& Case::digits() {
  if (!digits_) digits_ = std::make_unique<DigitLaunches>(target_, scenario(), timeline());
  return *digits_;
}

double Case::roundoff() const {
  return arithmetic_profile(target_.capabilities(), scenario()).accumulator_roundoff;
}

const Execution& Case::execution() {
  if (!execution_) {
    execution_ = execute(target_, scenario(), timeline(), fill(), {.rows = &rows_});
  }
  return *execution_;
}

std::string cannot_run(const kernels::Target& target, const model::Scenario& scenario) {
  const auto refusals = model::validate(scenario);
  if (!refusals.empty()) return refusals.front().message();
  const std::string missing = unsupported_reason(target.capabilities(), scenario);
  return missing.empty() ? "" : "the target does not claim " + missing;
}

std::string broke_off(const model::Scenario& scenario, const Execution& execution) {
  const auto step = execution.first_problem();
  if (!step) return "";
  const StepAnswer& answer =
      *step < 0 ? execution.open : execution.steps[static_cast<std::size_t>(*step)];
  const std::string where =
      *step < 0 ? "at the start"
                : fmt::format("at step {} ({})", *step,
                              model::describe(scenario.steps[static_cast<std::size_t>(*step)]));
  return fmt::format("the run broke off {}: {}", where, answer.reason);
}

}  // namespace kvcheck::properties
