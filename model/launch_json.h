// The launch of a scenario as JSON.
#pragma once

#include "model/json_reader.h"
#include "model/launch.h"

namespace kvcheck::model {

/// \throws ScenarioError that names the field, its value and the remedy
void read_launch(const Json& json, LaunchSpec& launch);

/// Every field, so that a case says what was launched.
Json launch_json(const LaunchSpec& launch);

}  // namespace kvcheck::model
