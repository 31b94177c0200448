// Cache layouts: pure functions between lengths, rows and positions.
//
// Symbols: T = tokens of one sequence so far, C = capacity, W = window_size, S = tokens of a step
// that starts at P = T - S, k = tokens of a rollback or a draft. Every layout keeps at least the
// W newest positions, and its rows depend on T alone, whatever the steps were.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "model/position.h"
#include "model/scenario.h"

namespace kvcheck::model {

/// Lengths of one period of a cache that has filled, and those among them where something holds.
struct LengthShare {
  std::int64_t lengths = 0;
  std::int64_t of = 1;
  friend bool operator==(const LengthShare&, const LengthShare&) = default;
};

/// One eviction policy. Where a policy says nothing else, rows [0, L(T)) hold positions
/// T-L(T) .. T-1 in order. All lengths are >= 0 and may go up to the end of int64.
class Layout {
 public:
  virtual ~Layout() = default;

  /// L(T): rows that hold live positions after T tokens.
  virtual std::int64_t resident(std::int64_t length) const = 0;

  /// Oldest position from which on everything up to T-1 is resident; T - L(T) unless the layout
  /// keeps sinks besides.
  virtual Position first_position(std::int64_t length) const { return {length - resident(length)}; }

  /// Where `position` stands after T tokens; empty unless it is resident.
  virtual std::optional<Row> row_of(std::int64_t length, Position position) const;

  /// What `row` holds after T tokens; empty where no live position stands.
  virtual std::optional<Position> position_in_row(std::int64_t length, Row row) const;

  /// Oldest position, sinks apart, that a rollback to length T must find in place.
  virtual Position oldest_required(std::int64_t length) const { return first_position(length); }

  /// Whether the rows of length T, less the newest k, serve as those of length T-k: every
  /// position from oldest_required(T-k) on was resident all the time and stands in its row for
  /// length T-k. What was evicted between counts as lost even if nothing overwrote it.
  /// \pre 0 <= tokens <= length
  virtual bool rollback_is_exact(std::int64_t length, std::int64_t tokens) const;

  /// The same of everything that is resident at T-k: the rows then are as if the sequence had
  /// never been longer. Differs from rollback_is_exact in a ring alone.
  virtual bool rollback_restores(std::int64_t length, std::int64_t tokens) const {
    return rollback_is_exact(length, tokens);
  }

  /// Largest k such that every drop of 1..k tokens is exact.
  virtual std::int64_t max_exact_rollback(std::int64_t length) const = 0;

  /// Whether appending S tokens to P must run on a temporary buffer, because the step gives away
  /// rows that its own queries still read.
  /// \pre past + tokens does not overflow
  virtual bool stages(std::int64_t past, std::int64_t tokens) const = 0;

  /// How often a draft of k tokens, all or the newest few of which may be dropped, is exact in a
  /// filled cache. Where it is, the step does not stage.
  /// \pre tokens >= 1
  virtual LengthShare exact_drafts(std::int64_t tokens) const = 0;

  /// Smallest capacity at which a draft of k is exact and never stages at every length, the
  /// other sizes unchanged; so does every larger one. Empty = none; 0 = all, as long as the
  /// sequence fits.
  /// \pre 1 <= tokens <= kMaxLength
  virtual std::optional<std::int64_t> capacity_for_drafts(std::int64_t tokens) const = 0;

  /// The same for a step of S that may not stage, whatever happens to its tokens.
  virtual std::optional<std::int64_t> capacity_without_staging(std::int64_t tokens) const = 0;
};

/// The layout that a scenario's cache asks for. An absent window stands for all rows that the
/// layout has for it.
/// \pre the cache keeps the rules of validate()
std::unique_ptr<Layout> make_layout(const CacheSpec& cache);

/// Whether nothing is ever evicted, so that the capacity bounds the lengths.
bool keeps_every_token(const CacheSpec& cache);

/// Smallest capacity that the window, the sinks and the pages allow; 0 for a layout without one.
/// \pre every size is between 0 and kMaxLength; page_size >= 1 for paged
std::int64_t least_capacity(const CacheSpec& cache);

}  // namespace kvcheck::model
