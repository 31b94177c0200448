// Launches with values that the property chooses: the rows of V replaced on their way in.
#pragma once

#include <functional>
#include <vector>

#include "properties/catalog/interposed.h"

namespace kvcheck::properties {

/// What lane `lane` of KV head `kv_head` of `entry` holds in every row of V. Must be representable
/// in the element type, and an integer in the range of the codes where the cache is quantised.
using ValueLanes =
    std::function<double(std::int64_t entry, std::int64_t kv_head, std::int64_t lane)>;

/// An interposer that puts these values into every token, loaded ones too; padding stays as it is.
/// A quantised cache gets the value scale 1, so that values are their own codes.
/// Case and scenario must outlive it; the scenario has the steps of the case.
Interposer value_interposer(const Case& c, const model::Scenario& scenario, ValueLanes lanes);

}  // namespace kvcheck::properties
