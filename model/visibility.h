// Visibility: which positions a query may see, as an exact set.
//
// GroupQueryAttention (contract 1.4.7): causal: j <= p; window W: j >= p-W+1; always j < T. Queries
// without new tokens (shared KV) stand at the end: p = T - S + s. Layout sinks: the sinks besides
// the window (see layouts/sinks.h).
// Attention (contract 2.4, 2.5): causal: j <= p with p = i + offset and offset = P when a past is
// given, nonpad[b] - Sq with nonpad_kv_seqlen, 0 otherwise; windows from opset 25 on, causal or
// not: p - left <= j <= p + right, with left = W - 1; then the mask; always j < T.
#pragma once

#include <cstdint>
#include <vector>

#include "model/position.h"
#include "model/scenario.h"
#include "model/timeline.h"

namespace kvcheck::model {

/// Positions that causality, windows and the length leave to a query: first .. last, empty when
/// last < first. The mask, and the sinks of layout sinks, are not part of it.
struct VisibleRange {
  std::int64_t first = 0;
  std::int64_t last = 0;
};

/// The range of a query that stands at `position` of an entry with `length` tokens.
VisibleRange visible_range(const Scenario& scenario, std::int64_t length, Position position);

/// Sinks that a query sees besides its window, which begins at `first`: positions [0, result).
std::int64_t sinks_before(const CacheSpec& cache, std::int64_t first);

/// Positions that query `query` (0-based in the step) of `head` in `entry` sees at `step`,
/// ascending. Head matters only under a mask of rank 3 or 4.
/// \pre steps()[step].defined, step appends, 0 <= query < queries of the entry
std::vector<Position> visible_positions(const Scenario& scenario, const Timeline& timeline,
                                        std::size_t step, std::int64_t entry, std::int64_t head,
                                        std::int64_t query);

/// The same into `seen`, whose memory is used again.
void visible_positions(const Scenario& scenario, const Timeline& timeline, std::size_t step,
                       std::int64_t entry, std::int64_t head, std::int64_t query,
                       std::vector<Position>& seen);

/// Whether every head of a query sees the same positions.
bool heads_see_alike(const Scenario& scenario);

}  // namespace kvcheck::model
