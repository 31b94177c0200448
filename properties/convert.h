// Translation between the model's words and the kernels' words; the only place where both meet.
#pragma once

#include "kernels/target.h"
#include "model/error_bound.h"
#include "model/scenario.h"
#include "model/timeline.h"

namespace kvcheck::properties {

kernels::ElementType to_kernel(model::ElementType type);
/// \pre type is one that the model computes in: f32, f16, bf16 or f64
model::ElementType to_model(kernels::ElementType type);

/// In what the rows of the cache are stored.
kernels::ElementType storage_type(const model::Scenario& scenario);

/// Elements of that type in a row of `lanes` lanes: half as many for int4, rounded up.
std::int64_t stored_lanes(const model::Scenario& scenario, std::int64_t lanes);

/// The session that a scenario asks for; unspecified rows start with `poison`.
kernels::SessionConfig session_config(const model::Scenario& scenario,
                                      const model::Timeline& timeline, double poison);

/// The arithmetic that `target` declares for the scenario's element type. f64 sessions compute in
/// double, so every roundoff is scaled by 2^-29 there.
model::ArithmeticProfile arithmetic_profile(const kernels::Capabilities& target,
                                            const model::Scenario& scenario);

/// Whether the target promises that NaN in unspecified rows has no influence here.
bool bears_nan(const kernels::Capabilities& target, const model::Scenario& scenario);

/// Whether the largest finite values in unspecified rows must have no influence here.
bool bears_huge(const kernels::Capabilities& target, const model::Scenario& scenario);

/// Whether the target claims a feature at the scenario's opset and element type.
bool claims(const kernels::Capabilities& target, const model::Scenario& scenario,
            std::string_view feature);

/// Why the scenario cannot be run with other data: its tensors are spelled out. Empty = it can.
std::string fixed_tensors_reason(const model::Scenario& scenario);

/// Why the scenario cannot be run with other steps or one entry alone, the tokens unchanged: the
/// tensors are spelled out, or position_ids or a short mask make the data depend on the steps.
/// Empty = it can.
std::string fixed_data_reason(const model::Scenario& scenario);

/// Why `target` does not claim to take the scenario; empty = it does.
std::string unsupported_reason(const kernels::Capabilities& target,
                               const model::Scenario& scenario);

}  // namespace kvcheck::properties
