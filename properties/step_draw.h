// Drawing the steps of a scenario with the lengths of its entries in view.
#pragma once

#include <cstdint>

#include "kernels/target.h"
#include "model/scenario.h"
#include "properties/draw.h"

namespace kvcheck::properties {

/// Operator and kind of cache that a scenario is drawn for.
enum class Family { gqa_block, gqa_full, attention_past, attention_nonpad };

struct StepSizes {
  int size = 0;              ///< 0 to 100: how many steps there may be.
  std::int64_t context = 0;  ///< Length that the judged queries have about; 0 = any.
  /// Whether steps are cut to what a scenario of this width may cost: many tokens come with few
  /// heads and lanes, and the other way round.
  bool thrifty = false;
};

/// Fills scenario.steps; shape, cache and features come first.
/// \returns the longest length of any entry
std::int64_t draw_steps(const kernels::Capabilities& target, Family family, Draw& draw,
                        StepSizes sizes, model::Scenario& scenario);

}  // namespace kvcheck::properties
