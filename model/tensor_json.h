// Tensors in the steps of a literal fill, as nested lists.
#pragma once

#include "model/json_reader.h"
#include "model/scenario.h"

namespace kvcheck::model {

/// A finite number as it is; otherwise "inf", "-inf" or "nan", which JSON has no numbers for.
Json number_json(double value);

/// Reads the fields q, k, v and mask of a step where they are given.
/// \throws ScenarioError for ragged lists and for what is no number
void read_tensors(Reader& step, StepTensors& tensors);

/// Adds the tensors that are not empty to the object of a step.
void write_tensors(Json& step, const StepTensors& tensors);

}  // namespace kvcheck::model
