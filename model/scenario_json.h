// The text form of a scenario: versioned JSON that a person can read and edit.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "model/scenario.h"

namespace kvcheck::model {

inline constexpr int kScenarioSchema = 1;

/// Text that is no scenario: broken JSON, an unknown field, a wrong type, a newer schema.
/// what() names the field, the value and the remedy.
class ScenarioError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Fields in a fixed order; what equals its default is left out, except schema, operator, steps.
nlohmann::ordered_json to_json(const Scenario& scenario);

/// \throws ScenarioError. The result is not yet validated.
Scenario scenario_from_json(const nlohmann::ordered_json& json);

/// \throws ScenarioError when validate() refuses; up to eight refusals are in the message
void require_valid(const Scenario& scenario);

/// Parses and checks `text`, at most 4 MiB.
/// \throws ScenarioError also when validate() refuses; with the refusals in the message.
Scenario parse_scenario(std::string_view text);

/// One line without spaces, the same for equal scenarios; the input of content_hash.
std::string canonical_text(const Scenario& scenario);

/// 16 hexadecimal digits over canonical_text; the file name in a corpus.
std::string content_hash(const Scenario& scenario);

}  // namespace kvcheck::model
