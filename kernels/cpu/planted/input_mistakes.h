// What each planted fault does to what a session and its steps bring.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "kernels/cpu/planted/faults.h"
#include "kernels/target.h"

namespace kvcheck::kernels {

/// Makes the session what a kernel that reads its fields wrong takes it for.
void distort_config(Fault fault, SessionConfig& config);

/// A step as a kernel that reads its tensors wrong takes it; nothing where it reads them right.
/// \param lengths before the step. \pre the step is taken
std::optional<StepRequest> distort_request(Fault fault, const SessionConfig& config,
                                           std::span<const std::int64_t> lengths,
                                           const StepRequest& request);

/// The mask of a step as a kernel that takes the wrong cells reads it; nothing where it does not.
std::optional<Tensor> distort_mask(Fault fault, const SessionConfig& config,
                                   std::span<const std::int64_t> lengths,
                                   const StepRequest& request);

/// Position that a token turns to; within the tables where `right` is.
std::int64_t distort_position(Fault fault, const SessionConfig& config,
                              std::span<const std::int64_t> lengths, std::int64_t entry,
                              std::int64_t token, std::int64_t right);

/// Code of a number that is `exact` steps large and not NaN. For the ends of fp8 no fault is there.
float distort_code(Fault fault, float exact, float lowest, float highest);

}  // namespace kvcheck::kernels
