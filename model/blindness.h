// Blindness: which wrong readings a scenario can tell from the right one.
#pragma once

#include <cstdint>
#include <vector>

#include "model/error_bound.h"
#include "model/oracle.h"
#include "model/wrong_models.h"

namespace kvcheck::model {

/// An element of the output of one step.
struct ElementAt {
  std::size_t step = 0;
  std::int64_t entry = 0, query = 0, head = 0, lane = 0;
};

/// Above this a wrong reading is certain to be seen even if rounding errors use up the bound.
inline constexpr double kSeparationSeen = 2;

/// How far a wrong reading's answer lies from the right one.
struct Separation {
  const WrongModel* model = nullptr;
  /// Largest |wrong - right| / bound over all outputs. At most 1: the scenario is blind to the
  /// reading, for a target may answer so and keep the bound. Above kSeparationSeen: no target that
  /// reads so can keep it.
  double ratio = 0;
  ElementAt where;
};

/// `right` must answer for the right reading; `model` for the same scenario. Infinite where one
/// answer is not finite.
Separation separation(Oracle& right, const ArithmeticProfile& profile, const WrongModel& model);

/// Of every wrong model that concerns the scenario.
std::vector<Separation> separations(const Scenario& scenario, const ArithmeticProfile& profile);

}  // namespace kvcheck::model
