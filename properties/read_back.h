// Read-back: which keys a target really attended, measured from its outputs alone.
//
// With Q = 0 every visible key has the same weight, 1/n or with sinks somewhat less, so values that
// code positions make the output show which keys took part. Digits of the position (all in one
// launch where they have lanes, else two launches for up to Hv^2 tokens, binary digits where
// Hv = 1) confirm the expected sets; where they disagree, one launch for each block of Hv positions
// shows the attended set itself, key by key.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/target.h"
#include "model/error_bound.h"
#include "model/scenario.h"
#include "model/timeline.h"

namespace kvcheck::properties {

/// Visibility of one query: contract and measurement.
struct MeasuredQuery {
  std::size_t step = 0;
  std::int64_t entry = 0, head = 0, query = 0;
  model::Position position;
  std::vector<model::Position> expected;
  std::vector<model::Position> observed;
  std::vector<double> weights;  ///< Of observed.
  bool measured = false;        ///< False: an output was not finite, or no launch answered.
  bool agrees() const { return measured && expected == observed; }
};

struct ReadBack {
  std::vector<MeasuredQuery> queries;
  std::string problem;  ///< Why nothing could be measured; empty otherwise.
};

/// The attended set of every query of the scenario, by one launch for each block of Hv positions.
ReadBack measure_visibility(kernels::Target& target, const model::Scenario& scenario);

/// Launches that measure_visibility makes.
std::int64_t launches_to_measure(const model::Scenario& scenario);

/// First place where the digit launches (digit_check.h) contradict the contract.
struct DigitMismatch {
  std::size_t step = 0;
  std::int64_t entry = 0, head = 0, query = 0;
};

/// The query at `place`, measured where a wrong edge would show: in the blocks around the first and
/// the last key that it should see, around its own position, and in the first and the last block.
/// `expected` and `observed` hold positions of these blocks alone. A few launches at any length.
MeasuredQuery measure_edges(kernels::Target& target, const model::Scenario& scenario,
                            const DigitMismatch& place);

/// The scenario with zero logits and the given position fill; additive masks only hide, and sinks
/// weigh no more than a few keys.
model::Scenario with_position_fill(const model::Scenario& scenario, model::FillKind kind,
                                   std::int64_t index);

}  // namespace kvcheck::properties
