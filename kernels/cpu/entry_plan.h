// What one step or one rollback does to the rows of one entry; the same for every kernel here.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/cpu/eviction.h"
#include "kernels/target.h"

namespace kvcheck::kernels {

/// What one step does to the rows of one entry. P = past, S = tokens, L = resident rows.
/// In place: rows [dropped, L(P)) move to the front and the new rows follow. Staged: rows
/// [0, L(P)) and the new rows meet in a temporary buffer, attention reads that, and its last
/// L(P+S) rows are written back.
struct EntryPlan {
  std::int64_t past = 0;
  std::int64_t tokens = 0;
  std::int64_t resident_before = 0;  ///< L(P).
  std::int64_t resident_after = 0;   ///< L(P+S).
  /// Rows that leave at the front, of the old and the new ones together: L(P) + S - L(P+S).
  std::int64_t dropped = 0;
  bool staged = false;
  std::int64_t moved = 0;            ///< Old rows copied in place; 0 on a drifting step.
  std::int64_t append_row = 0;       ///< Row of the first new token, where attention reads it.
  std::int64_t write_back_from = 0;  ///< Staged: first row that goes back into the buffer.

  std::int64_t length() const { return past + tokens; }
};

/// What kind of buffer a session has.
struct CacheKind {
  Eviction eviction = Eviction::never();
  bool concatenates = false;   ///< attention with a past: present has exactly T rows.
  bool fresh_present = false;  ///< Past and present are different buffers.
};

/// \pre check_config(config) is empty
CacheKind cache_kind(const SessionConfig& config);

/// The plan of a step of `tokens` after `past`.
EntryPlan plan_entry(const CacheKind& kind, std::int64_t past, std::int64_t tokens);

/// Why dropping the newest tokens[b] tokens of entries of these lengths is not possible; empty when
/// it is. \param checks whether drops that are not exact are refused
std::optional<std::string> why_not_rollback(const CacheKind& kind,
                                            std::span<const std::int64_t> lengths,
                                            std::span<const std::int64_t> tokens,
                                            bool checks = true);

}  // namespace kvcheck::kernels
