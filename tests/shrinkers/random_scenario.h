// Large random valid scenarios for the tests of the search.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/scenario.h"

namespace kvcheck::shrinkers::testing {

/// A valid scenario of `op`, the same for the same seed on every machine: up to 4 entries, 8 KV
/// heads, 12 steps of up to 40 tokens, rollbacks, windows, masks, every fill.
model::Scenario random_scenario(model::Operator op, std::uint64_t seed);

/// A small valid gqa scenario with f32, one head of size 1, no window and these steps.
model::Scenario plain_scenario(std::vector<model::Step> steps);

/// "past 1; append 2 (1 query)".
std::string steps_text(const model::Scenario& scenario);

}  // namespace kvcheck::shrinkers::testing
