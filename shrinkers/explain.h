// Explanation of a minimal scenario: which fields matter, and the nearest case that passes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/scenario.h"
#include "shrinkers/shrink.h"

namespace kvcheck::shrinkers {

struct FieldVerdict {
  std::string field;     ///< "cache.window_size", "steps[1].tokens", ...
  std::string value;     ///< In the minimal scenario.
  bool matters = false;  ///< False: every other value tried fails as well.
  std::string tried;     ///< "1, 2, 5": the values tried; empty = the budget ended before.
  std::string passing;   ///< Those of them that pass; empty unless it matters.
};

struct Explanation {
  /// Fields that have another valid value, in the order of the JSON form.
  std::vector<FieldVerdict> fields;
  /// One edit away and passing, with the words for the edit ("steps[1].tokens 2 -> 1").
  std::optional<model::Scenario> nearest_passing;
  std::string nearest_change;
  std::int64_t evaluations = 0;
};

/// Gives every field a handful of other values, the smallest changes first. The nearest passing
/// scenario is the one with the fewest further fields repaired, then the smallest change, then
/// steps before cache before flags before sizes before values.
/// \pre still_fails(minimal). At most `evaluations` further calls of still_fails; what `known`
/// already answers is not asked again.
Explanation explain(const model::Scenario& minimal, const StillFails& still_fails,
                    std::int64_t evaluations = 200, const Judged& known = {});

}  // namespace kvcheck::shrinkers
