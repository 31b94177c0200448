// Run records made by hand, one for each kind of page that reports have to draw.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "properties/run_record.h"

namespace kvcheck::reports::samples {

/// Names of the records that have golden reports.
std::vector<std::string_view> names();

/// \throws std::invalid_argument for an unknown name
properties::RunRecord record(std::string_view name);

/// 60 findings, the first of 4,096 steps, 400 checks, 400 situations: more than any page holds.
properties::RunRecord overfull();

/// Text that tries to break out of every context: markup, script ends, quotes, terminal escapes,
/// marks that reorder text, broken UTF-8.
std::string hostile(std::string_view where);

}  // namespace kvcheck::reports::samples
