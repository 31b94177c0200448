// Drawing the optional features of the operators.
#pragma once

#include "kernels/target.h"
#include "model/scenario.h"
#include "properties/draw.h"

namespace kvcheck::properties {

/// Sets the features that the target claims, each with a small chance of its own, so that most
/// scenarios have none or one and some have several. Shape, element type and cache layout come
/// first.
void draw_features(const kernels::Capabilities& target, Draw& draw, model::Scenario& scenario);

/// The mask, or attention_bias of gqa. `longest` is the longest length of any entry; lengths and
/// capacity come first.
void draw_mask(const kernels::Capabilities& target, Draw& draw, std::int64_t longest,
               model::Scenario& scenario);

}  // namespace kvcheck::properties
