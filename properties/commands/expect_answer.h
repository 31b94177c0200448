// The exact model's answer to the steps of one scenario, as JSON; fields in expect_command.h.
#pragma once

#include <cstddef>

#include <nlohmann/json.hpp>

#include "model/operands.h"
#include "model/oracle.h"

namespace kvcheck::properties {

/// The arithmetic by which bounds are given: f32 (f64 for f64), stored in the element type.
model::ArithmeticProfile plain_arithmetic(model::ElementType type);

class ExpectAnswer {
 public:
  /// \pre the scenario is valid
  explicit ExpectAnswer(const model::Scenario& scenario);

  /// The object of one step; with `inputs` also what a target is given.
  nlohmann::ordered_json step(std::size_t step, bool inputs);

 private:
  using Json = nlohmann::ordered_json;

  const model::EntryStep& entry(std::int64_t b) const;
  Json resident(std::int64_t b) const;
  void add_visible(Json& visible) const;
  void add_outputs(Json& json);
  void add_qk(Json& json);
  void add_inputs(Json& json);
  void add_parameters(Json& json) const;
  void add_rotary(Json& json) const;
  Json tokens(bool keys);
  Json mask() const;

  model::Oracle oracle_;
  const model::Scenario& s_;
  model::Reading right_;
  model::Operands operands_;
  std::size_t step_ = 0;
};

}  // namespace kvcheck::properties
