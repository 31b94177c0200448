// Observations: one line of JSON per case, in the shape that property-testing notebooks read.
#pragma once

#include <string>

#include "properties/case.h"
#include "properties/tally.h"

namespace kvcheck::properties {

/// The line of a case, with its end of line: type test_case, status passed, failed or gave_up,
/// representation, arguments, how_generated, features, timing, metadata, property, run_start.
std::string observation_line(const Case& c, const Origin& origin, Verdict worst,
                             const std::string& text, const std::string& run_start);

}  // namespace kvcheck::properties
