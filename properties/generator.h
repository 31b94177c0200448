// Generators of scenarios that a target claims to take.
#pragma once

#include <cstdint>
#include <vector>

#include <rapidcheck/Gen.h>

#include "kernels/target.h"
#include "model/scenario.h"

namespace kvcheck::properties {

/// Scenarios within the capabilities, about half of their fields on boundary values: lengths at
/// the window and the capacity and one beside them, one query, steps larger than the window or the
/// buffer, rollbacks to the deepest exact depth. Valid by construction. Carries no shrinks:
/// shrinkers/ shrinks values, not draws.
rc::Gen<model::Scenario> scenario_generator(const kernels::Capabilities& target);

/// Which operator and layout to draw; for runs that must reach one of them.
struct GeneratorFocus {
  bool gqa_block = true, gqa_full = true, attention_past = true, attention_nonpad = true;
  /// Absolute length at the queries that are judged, about; with few queries, heads and lanes, so
  /// that a long context stays cheap. 0 = any, mostly short.
  std::int64_t context_length = 0;
  friend bool operator==(const GeneratorFocus&, const GeneratorFocus&) = default;
};

/// Whether the target takes anything within the focus.
bool can_draw(const kernels::Capabilities& target, const GeneratorFocus& focus);

/// \pre can_draw(target, focus), where a scenario is drawn
rc::Gen<model::Scenario> scenario_generator(const kernels::Capabilities& target,
                                            const GeneratorFocus& focus);

/// Lanes of a packet of 16 bytes in the cache of a target that launches kernels.
std::int64_t packet_lanes(const kernels::Capabilities& target);

/// A small exhaustive grid of boundary cases, the same in every run: every causal past / query /
/// new key count up to 3, and every window and capacity up to 3 and 5 with the step lists that
/// cross an eviction; every optional feature; a few queries behind a past as long as several tiles
/// and chunks of keys. One in four of it for targets that launch kernels, with kernels, orders of
/// threads and 16-bit types by turns.
std::vector<model::Scenario> lattice(const kernels::Capabilities& target);

}  // namespace kvcheck::properties
