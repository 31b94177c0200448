// Mutation: a scenario beside one that came near to its bound.
#pragma once

#include <optional>

#include "kernels/target.h"
#include "model/scenario.h"
#include "model/timeline.h"
#include "properties/draw.h"

namespace kvcheck::properties {

/// Multiplications that the scenario asks for, about: queries times keys, heads and lanes.
double cost_of(const model::Scenario& scenario, const model::Timeline& timeline);

/// Scenarios that cost more are neither mutated nor made: the targeted phase lives by their number.
inline constexpr double kMostTargetedCost = 1 << 15;

/// One to three small changes to the data, the numbers or the steps of `scenario`; valid and within
/// the capabilities. Empty when no change that was tried is.
std::optional<model::Scenario> mutate(const model::Scenario& scenario,
                                      const kernels::Capabilities& target, Draw& draw);

}  // namespace kvcheck::properties
