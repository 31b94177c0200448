// What a record says about where and when it was made.
#pragma once

#include <string>

namespace kvcheck::properties {

/// "AMD EPYC 7V12, 2 cores"
std::string machine_text();

/// Load average of the last minute; NaN where the system does not tell.
double load_average();

}  // namespace kvcheck::properties
