// Explanation of a minimal scenario: which fields matter, and the nearest case that passes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/scenario.h"
#include "shrinkers/shrink.h"

namespace kvcheck::shrinkers {

struct FieldVerdict {
  std::string field;       ///< "cache.window_size", "steps[1].tokens", ...
  std::string value;       ///< In the minimal scenario.
  bool matters = false;    ///< False: every other value tried fails as well.
  std::string tried;       ///< "1, 2, 5": the values tried.
};

struct Explanation {
  std::vector<FieldVerdict> fields;
  /// One edit away and passing, with the words for the edit ("steps[1].tokens 2 -> 1").
  std::optional<model::Scenario> nearest_passing;
  std::string nearest_change;
  std::int64_t evaluations = 0;
};

/// \pre still_fails(minimal). At most `evaluations` further calls of still_fails.
Explanation explain(const model::Scenario& minimal, const StillFails& still_fails,
                    std::int64_t evaluations = 200);

}  // namespace kvcheck::shrinkers
