// One name of those that the scenario's call can have.
#include "properties/calls/call_draw.h"

#include "properties/calls/call_changes.h"
#include "properties/calls/call_of.h"

namespace kvcheck::properties {
namespace {

constexpr int kChance = 12;  // Percent.

}  // namespace

void draw_call_change(const kernels::Capabilities& target, Draw& draw, model::Scenario& scenario) {
  if (!target.has("operator_calls") || !draw.percent(kChance)) return;
  const auto made = operator_call_of(scenario);
  const auto* call = std::get_if<kernels::OperatorCall>(&made);
  if (call == nullptr) return;
  const auto changes = changed_calls(*call);
  scenario.call_change = draw.pick(changes).name;
}

}  // namespace kvcheck::properties
