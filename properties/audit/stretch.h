// Stretching: the same scenario behind a long past.
#pragma once

#include <cstdint>
#include <optional>

#include "kernels/target.h"
#include "model/scenario.h"

namespace kvcheck::properties {

/// The scenario with a past of about `context` tokens put before its first step, by the harness.
/// Windowed caches keep their size behind a past of whole blocks, or, with `wide`, grow with the
/// past, so that evictions and exact rollbacks stay what they were.
/// Empty: the target does not take it, or it asks too much work of the exact model.
/// \pre context >= 1
std::optional<model::Scenario> stretched(const kernels::Capabilities& target,
                                         const model::Scenario& scenario, std::int64_t context,
                                         bool wide);

}  // namespace kvcheck::properties
