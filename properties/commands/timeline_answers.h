// What a cache layout means for rollbacks and drafts: which depths are exact now, and which
// capacity makes a draft of k tokens always exact and never staged.
#pragma once

#include <iosfwd>

#include <nlohmann/json.hpp>

#include "model/scenario.h"
#include "model/timeline.h"

namespace kvcheck::properties {

/// The answers in words, for the state after the last step.
/// \pre one batch entry; the cache keeps the rules of model::validate
void print_answers(const model::CacheSpec& cache, const model::Timeline& timeline,
                   std::ostream& out);

/// {T, up_to, from}: drops of up to `up_to` tokens are exact, and again those of `from` to T, which
/// leave sinks alone or nothing (null where there are none). null while the rows are not defined.
nlohmann::ordered_json exact_now_json(const model::CacheSpec& cache,
                                      const model::Timeline& timeline);

/// [{tokens, exact_lengths, of_lengths, capacity_for_drafts, capacity_without_staging}] for 1, 2,
/// .. tokens, up to the first that is exact nowhere, at most 16. Capacities are the smallest that
/// serve at every length, null where none does.
nlohmann::ordered_json drafts_json(const model::Layout& layout);

}  // namespace kvcheck::properties
