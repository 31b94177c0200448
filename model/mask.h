// The attn_mask of a scenario as a function of absolute positions.
//
// A mask bound to positions instead of step-relative rows stays the same when the same tokens
// are split into other steps, which the step-split property needs.
#pragma once

#include <cstdint>

#include "model/position.h"
#include "model/scenario.h"

namespace kvcheck::model {

/// Whether the mask hides `key` from `query`. Entries and heads count only as far as the mask's
/// rank reaches (rank 2: neither, rank 3: heads, rank 4: both).
bool mask_hides(const Scenario& scenario, std::int64_t entry, std::int64_t head, Position query,
                Position key);

/// What the mask adds to the logit where it does not hide: 0 for none and boolean, a small
/// finite value for additive (0 under the position fills, so that weights stay equal). The value
/// is representable in the scenario's element type.
double mask_bias(const Scenario& scenario, std::int64_t entry, std::int64_t head, Position query,
                 Position key);

}  // namespace kvcheck::model
