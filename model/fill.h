// Data fills: the value of every tensor element as a pure function of the scenario.
//
// No stream is drawn: an element depends on (seed, tensor, entry, head, token, lane) alone, so
// any split of the same tokens gives the same data, and K, V, heads, entries and generations all
// differ from one another. All values are representable in the scenario's element type.
#pragma once

#include <cstdint>

#include "model/position.h"
#include "model/scenario.h"
#include "model/timeline.h"

namespace kvcheck::model {

class Fill {
 public:
  /// Both must outlive the fill.
  Fill(const Scenario& scenario, const Timeline& timeline);

  double key(std::int64_t entry, std::int64_t kv_head, Token token, std::int64_t lane) const;
  double value(std::int64_t entry, std::int64_t kv_head, Token token, std::int64_t lane) const;
  /// Query `query` (0-based) that entry `entry` asks in step `step`. Depends on the query's
  /// position and on the tokens that the cache then holds, not on how steps were split.
  double query(std::size_t step, std::int64_t entry, std::int64_t query_head, std::int64_t query,
               std::int64_t lane) const;

  /// Content of unspecified rows for a poison: 0, a moderate value, the largest finite, NaN.
  double poison(Poison poison) const;

 private:
  const Scenario* scenario_;
  const Timeline* timeline_;
};

/// Lane of the output that shows the weight of `position` under a position fill, for `kv_head` of
/// `entry`; lanes are rotated per head and entry so that a swapped head decodes to wrong
/// positions. \pre the fill is position_code or position_block
std::int64_t position_lane(const Scenario& scenario, std::int64_t entry, std::int64_t kv_head,
                           Position position);

}  // namespace kvcheck::model
