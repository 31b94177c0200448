// Stretching: the same scenario behind a long past.
#pragma once

#include <cstdint>
#include <optional>

#include "kernels/target.h"
#include "model/scenario.h"

namespace kvcheck::properties {

/// Where the tokens go that a scenario lacks.
enum class Stretch {
  past,          ///< Before the first step; windowed caches keep their size, behind whole blocks.
  wide,          ///< The same, and windows and capacities grow with the past, so that evictions and
                 ///< exact rollbacks stay what they were.
  last_entry,    ///< The same as past, for the last entry of the batch alone.
  first_append,  ///< Into the first append of attention, which asks no further queries.
};

/// The scenario with about `context` tokens of the last entry before or in its first step.
/// Empty: the target does not take it, or it asks too much work of the exact model.
/// \pre context >= 1
std::optional<model::Scenario> stretched(const kernels::Capabilities& target,
                                         const model::Scenario& scenario, std::int64_t context,
                                         Stretch how);

}  // namespace kvcheck::properties
