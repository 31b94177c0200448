// Sampling: properties that need a run of their own are judged on some cases of a search alone.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "properties/case.h"

namespace kvcheck::properties {

/// Empty where a property shall be judged on the case: always in Mode::alone, in Mode::bundled on
/// one scenario in `of`, chosen by its content, another one for each property. Else the reason.
std::string passed_over(const Case& c, std::string_view property, std::uint64_t of);

}  // namespace kvcheck::properties
