// The argument of a finding, sentence by sentence: facts first, then the contradiction.
#pragma once

#include <string>
#include <vector>

#include "model/scenario.h"
#include "model/timeline.h"
#include "properties/read_back.h"

namespace kvcheck::properties {

/// One sentence per step of what the tokens and rows are, at most 12 of them.
std::vector<std::string> timeline_words(const model::Scenario& scenario,
                                        const model::Timeline& timeline);

/// The rule that decides what `query` may see, what it says here, and what was measured.
std::vector<std::string> visibility_words(const model::Scenario& scenario,
                                          const model::Timeline& timeline,
                                          const MeasuredQuery& query);

}  // namespace kvcheck::properties
