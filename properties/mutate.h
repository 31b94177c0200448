// Mutation: a scenario beside one that came near to its bound.
#pragma once

#include <optional>

#include "kernels/target.h"
#include "model/scenario.h"
#include "properties/draw.h"

namespace kvcheck::properties {

/// One to three small changes to the data, the numbers or the steps of `scenario`; valid and within
/// the capabilities. Empty when no change that was tried is.
std::optional<model::Scenario> mutate(const model::Scenario& scenario,
                                      const kernels::Capabilities& target, Draw& draw);

}  // namespace kvcheck::properties
