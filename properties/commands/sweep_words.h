// What a sweep came to, as text and as JSON.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "properties/sweep/grid.h"
#include "properties/sweep/sweep.h"

namespace kvcheck::properties {

/// A sweep with everything that its words need.
struct SweepRecord {
  const Grid& grid;
  std::string target, target_version;
  std::string against, against_version;  ///< Empty = one target.
  SweepResult result;
  double seconds = 0;
  std::vector<std::string> files;     ///< For each group its saved scenario; empty = none.
  std::vector<std::string> commands;  ///< For each group how to replay it; empty = not at all.
};

std::string sweep_text(const SweepRecord& record);
nlohmann::ordered_json sweep_json(const SweepRecord& record);

/// "4,224 of 50,688 diverge: exactly those with is_causal = 1 and past > 0".
std::string cell_sentence(const SweepRecord& record, const Cell& cell);

}  // namespace kvcheck::properties
