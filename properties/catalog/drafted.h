// A scenario with drafts between its steps that are rolled back exactly.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/scenario.h"
#include "model/timeline.h"

namespace kvcheck::properties {

struct Drafted {
  model::Scenario scenario;
  std::vector<std::size_t> places;  ///< Where each step of the case stands in it.
  std::int64_t drafts = 0;          ///< How many were put in; 0 = none is exact.
  /// "before step 1: append 2, rollback 1, rollback 1", for the first of them.
  std::string in_words() const;
};

/// Puts a draft before each of up to three appends, where every entry can take it and give it back
/// exactly. `chunks`: whether a step may bring several tokens. Drafts have generations of their
/// own, from 1000 on. \pre validate(scenario) is empty, timeline is the scenario's,
/// fixed_data_reason is empty
Drafted with_drafts(const model::Scenario& scenario, const model::Timeline& timeline, bool chunks);

}  // namespace kvcheck::properties
