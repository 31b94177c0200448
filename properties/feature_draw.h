// Drawing the optional features of the operators.
#pragma once

#include <cstdint>

#include "kernels/target.h"
#include "model/scenario.h"
#include "properties/draw.h"

namespace kvcheck::properties {

/// Sets the features that the target claims, each with a small chance of its own, so that most
/// scenarios have none or one and some have several; behind a long `context`, of which few are
/// judged, with about twice the chance. Shape, element type and cache layout come first.
void draw_features(const kernels::Capabilities& target, Draw& draw, std::int64_t context,
                   model::Scenario& scenario);

struct MaskLengths {
  std::int64_t longest = 0;  ///< Of any entry after any step.
  std::int64_t context = 0;  ///< Length that the judged queries have about; 0 = any.
};

/// The mask, or attention_bias of gqa. Steps and capacity come first.
void draw_mask(const kernels::Capabilities& target, Draw& draw, MaskLengths lengths,
               model::Scenario& scenario);

}  // namespace kvcheck::properties
