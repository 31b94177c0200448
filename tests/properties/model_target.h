// A target that answers one scenario from the exact model, with mistakes put in by the test.
#pragma once

#include <functional>

#include "kernels/target.h"
#include "model/scenario.h"

namespace kvcheck::properties {

/// Changes the answer of a step before it is given.
using Mistake = std::function<void(std::size_t step, kernels::StepResult& result)>;

/// Claims every feature. Outputs and qk are the exact ones rounded to the element type, rows those
/// that the cache stores; steps must come as in the scenario.
std::unique_ptr<kernels::Target> make_model_target(const model::Scenario& scenario,
                                                   Mistake mistake = nullptr);

/// What the model target claims.
kernels::Capabilities all_capabilities();

}  // namespace kvcheck::properties
