// Rules of the operators' optional features: rotary embedding, sinks, masks, windows and the rest.
#pragma once

#include <vector>

#include "model/scenario.h"

namespace kvcheck::model {

/// Refusals of everything but shapes, cache and steps. Source: contract 1.1, 1.2, 1.5, 2.1, 2.4.
std::vector<Refusal> feature_refusals(const Scenario& scenario);

/// Brings the same fields to the nearest valid values: a feature that the operator lacks is
/// dropped, a number is clipped. Shapes must be repaired before.
void repair_features(Scenario& scenario);

/// Tensors of a literal fill that do not have the shape which their step asks for.
/// \pre the scenario is valid in every other respect
std::vector<Refusal> literal_refusals(const Scenario& scenario);

}  // namespace kvcheck::model
