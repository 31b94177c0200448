// Drawing the change of an operator call.
#pragma once

#include "kernels/target.h"
#include "model/scenario.h"
#include "properties/draw.h"

namespace kvcheck::properties {

/// Gives a few of the scenarios whose last step amounts to an operator call a change of it, where
/// the target takes such calls.
void draw_call_change(const kernels::Capabilities& target, Draw& draw, model::Scenario& scenario);

}  // namespace kvcheck::properties
