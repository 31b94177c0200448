// Strong index types: a position names a token, a row names a place in the buffer.
#pragma once

#include <compare>
#include <cstdint>

namespace kvcheck::model {

/// Absolute index of a token in its sequence, 0 for the first. A rollback frees the newest
/// positions and the next append gives them to other tokens, so a position identifies a token
/// only together with its generation (see timeline.h). Query positions may be negative where an
/// operator's origin is (Attention with nonpad_kv_seqlen shorter than the query).
struct Position {
  std::int64_t value = 0;
  friend auto operator<=>(Position, Position) = default;
};

/// Index of a row of the cache buffer, in [0, capacity). Rows are reused after an eviction.
struct Row {
  std::int64_t value = 0;
  friend auto operator<=>(Row, Row) = default;
};

}  // namespace kvcheck::model
