// Parameter tensors: inputs of the operators that belong to no token, as a session is given them.
#pragma once

#include "kernels/target.h"
#include "model/scenario.h"
#include "model/timeline.h"

namespace kvcheck::properties {

/// [Nq] in the element type. \pre scenario.head_sink
kernels::Tensor head_sink(const model::Scenario& scenario);

/// Tables [rows, lanes/2] in the element type, with a row for every position that a step names.
/// \pre scenario.rotary
kernels::RotaryConfig rotary_config(const model::Scenario& scenario,
                                    const model::Timeline& timeline);

/// Weights [H] in the element type. \pre scenario.qk_norm
kernels::QkNormConfig qk_norm_config(const model::Scenario& scenario);

/// Scales f32 [1] or [Nk, H]; kind "none" without any where the cache is not quantised.
kernels::QuantisationConfig quantisation_config(const model::Scenario& scenario);

}  // namespace kvcheck::properties
