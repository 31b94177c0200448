// Diagnosis: which wrong reading of the contract explains what a target answered.
#pragma once

#include <string>
#include <vector>

#include "kernels/target.h"
#include "model/scenario.h"

namespace kvcheck::properties {

/// Runs `scenario` once and names the wrong readings (model/wrong_models.h) under which all its
/// outputs keep their bounds although under the contract's they do not, as one sentence; nothing
/// where the outputs are right, where no reading explains them, or where the target answered none.
std::vector<std::string> diagnosis_words(kernels::Target& target, const model::Scenario& scenario);

}  // namespace kvcheck::properties
