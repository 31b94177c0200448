// The fields of a scenario as names and values in words.
#pragma once

#include <string>
#include <vector>

#include "model/scenario.h"

namespace kvcheck::shrinkers {

struct Field {
  std::string name;   ///< "batch", "cache.window_size", "steps[1].tokens".
  std::string value;  ///< "3", "off", "[1, 2]".
};

/// Fields outside the steps that the scenario's operator has, in the order of the JSON form.
std::vector<Field> scalar_fields(const model::Scenario& scenario);

/// Fields of every step: tokens, and for appends queries ("all" = one for every token of gqa) and
/// a generation other than the default.
std::vector<Field> step_fields(const model::Scenario& scenario);

/// "3" when all entries agree, else "[1, 2]".
std::string counts_text(const std::vector<std::int64_t>& counts);

/// The text of one field; empty when the scenario does not have it.
std::string field_text(const model::Scenario& scenario, const std::string& name);

/// Both have as many steps, of the same kinds in the same order.
bool same_kinds(const model::Scenario& a, const model::Scenario& b);

/// "batch 3 -> 1, cache.capacity 8 -> 4": every field that differs; with `with_steps` also those of
/// the steps, or "steps 5 -> 3" when their number does.
std::string difference(const model::Scenario& before, const model::Scenario& after,
                       bool with_steps = true);

/// Names of the fields that differ; "steps" when the kinds or the number of steps do.
std::vector<std::string> changed_fields(const model::Scenario& before,
                                        const model::Scenario& after);

}  // namespace kvcheck::shrinkers
