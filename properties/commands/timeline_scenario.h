// The scenario that the options of `timeline` ask for.
#pragma once

#include <stdexcept>

#include "model/scenario.h"
#include "properties/commands/timeline_command.h"

namespace kvcheck::properties {

/// Options that cannot be served; what() names the option, the value and the remedy.
struct BadOption : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// One batch entry with the cache and the steps of `options`.
/// \throws BadOption
model::Scenario timeline_scenario(const TimelineOptions& options);

}  // namespace kvcheck::properties
