// Evidence: what a minimal scenario did on a target, stored so that a page can be made later.
#pragma once

#include "kernels/target.h"
#include "model/scenario.h"
#include "properties/case.h"
#include "properties/run_record.h"

namespace kvcheck::properties {

/// Runs `scenario` once more with rows, values and measured visibility, and puts the argument of
/// the finding into words. `judgement` is the failed judgement of the property.
Evidence collect_evidence(kernels::Target& target, const model::Scenario& scenario,
                          const Judgement& judgement);

}  // namespace kvcheck::properties
