// Visibility: which positions a query may see, as an exact set.
//
// GroupQueryAttention (contract 1.4.7): causal: j <= p; window W: j >= p-W+1; always j < T.
// Attention (contract 2.4, 2.5): causal: j <= i + offset with offset = P when a past is given,
// nonpad[b] - Sq with nonpad_kv_seqlen, 0 otherwise; then the mask; always j < T.
// Layout sinks: the sinks besides the window (see layouts/sinks.h).
#pragma once

#include <cstdint>
#include <vector>

#include "model/position.h"
#include "model/scenario.h"
#include "model/timeline.h"

namespace kvcheck::model {

/// Positions that query `query` (0-based in the step) of `head` in `entry` sees at `step`,
/// ascending. Head matters only under a mask of rank 3 or 4.
/// \pre steps()[step].defined, step appends, 0 <= query < queries of the entry
std::vector<Position> visible_positions(const Scenario& scenario, const Timeline& timeline,
                                        std::size_t step, std::int64_t entry, std::int64_t head,
                                        std::int64_t query);

}  // namespace kvcheck::model
