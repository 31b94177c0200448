// How one configuration of a grid goes on one target.
#pragma once

#include <cstdint>
#include <string>

#include "properties/case.h"
#include "properties/catalog.h"

namespace kvcheck::properties {

/// refused: the target does not claim to take it, so nothing was asked. errored: our own fault.
enum class SweepOutcome : std::uint8_t { not_run, agree, diverge, refused, errored };

struct ConfigurationResult {
  SweepOutcome outcome = SweepOutcome::not_run;
  const Property* property = nullptr;  ///< Of a divergence: the first property that fails.
  Kind kind = Kind::over_bound;        ///< Of a divergence.
  std::string text;                    ///< Of a divergence the sentence, else the reason.
  double ratio = 0;                    ///< Largest bound ratio that was met.
};

/// Judges answers, rows, visible sets if they are wanted, values and intermediates, in this order.
/// \pre the target claims the scenario
ConfigurationResult judge_configuration(Case& c, bool visible_sets);

/// Why nothing is asked of the target; empty = it claims the scenario, and everything in it can be
/// judged.
std::string refused_reason(const kernels::Capabilities& target, const model::Scenario& scenario);

}  // namespace kvcheck::properties
