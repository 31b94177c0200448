// Blindness and diagnosis: what a scenario can tell apart, and which reading explains an answer.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
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

/// A wrong model under which every observed output keeps its bound.
struct Explanation {
  const WrongModel* model = nullptr;
  double worst_ratio = 0;  ///< Largest bound ratio under that reading.
};

/// Which wrong readings explain what a target answered, the best first. `observed` gives an output
/// element, or nothing where the target gave none. Readings whose answer cannot be told from the
/// right one's are left out.
std::vector<Explanation> diagnose(
    const Scenario& scenario, const ArithmeticProfile& profile,
    const std::function<std::optional<double>(const ElementAt&)>& observed);

}  // namespace kvcheck::model
