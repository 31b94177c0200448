// Other values for the fields of a scenario: one edit each, the smallest first.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/scenario.h"

namespace kvcheck::shrinkers {

/// What an edit touches, nearest to the cache's timeline first.
enum class Area { steps, cache, flags, sizes, values };

/// A valid scenario that differs in one field, and in what that field drags along.
struct Variation {
  std::string field;  ///< As in fields.h; "steps[1]" for leaving a step out.
  std::string value;  ///< In the original.
  std::string other;  ///< Here; "removed" for a step that is left out.
  model::Scenario scenario;
  Area area = Area::values;
  std::int64_t distance = 1;  ///< How far the number moved; 1 for a choice.
  std::int64_t dragged = 0;   ///< Further fields that had to change to stay valid.
};

/// Every variation that is valid and distinct from `scenario`, grouped by field in the order of
/// the JSON form. \pre validate(scenario) is empty
std::vector<Variation> variations(const model::Scenario& scenario);

}  // namespace kvcheck::shrinkers
