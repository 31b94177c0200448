// The cache timeline: what every batch entry holds after every step of a scenario.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "model/position.h"
#include "model/scenario.h"

namespace kvcheck::model {

/// A token: its position and the generation of the append that wrote it.
struct Token {
  Position position;
  std::int64_t generation = 0;
  friend bool operator==(const Token&, const Token&) = default;
};

/// One batch entry around one step.
struct EntryStep {
  std::int64_t past = 0;     ///< P: tokens before the step.
  std::int64_t length = 0;   ///< T: tokens after it.
  std::int64_t queries = 0;  ///< Queries asked in this step.
  /// Position of query 0; query i has position origin + i. Negative only with nonpad_kv_seqlen.
  Position origin;
  std::int64_t resident = 0;  ///< L(T).
  Position first_position;    ///< T - L(T): position in row 0.
  std::int64_t evicted = 0;   ///< Positions dropped from the front by this step.
  bool staged = false;        ///< The contract needs a temporary buffer here.
  std::int64_t max_exact_rollback = 0;
  /// False for a rollback whose rows are not where the shorter length needs them.
  bool rollback_exact = true;
};

/// All entries around one step.
struct TimelineStep {
  std::vector<EntryStep> entries;
  /// False from an inexact rollback on: the contract does not say what the rows hold.
  bool defined = true;
  /// Why not, for people: "rollback of 3 at T=12 is not exact: L(9)=6 but L(12)-3=3".
  std::string undefined_reason;
};

/// The append (or past) that brought a token.
struct Written {
  std::int64_t generation = 0;
  std::size_t step = 0;
};

/// The timeline of a valid scenario.
class Timeline {
 public:
  explicit Timeline(const Scenario& scenario);

  const std::vector<TimelineStep>& steps() const { return steps_; }

  /// Generation of `position` of `entry` as the cache holds it after step `step`.
  /// \pre 0 <= position < steps()[step].entries[entry].length
  std::int64_t generation(std::size_t step, std::int64_t entry, Position position) const;

  /// How each of `positions` of `entry` came into the cache as it is after `step`; one walk.
  /// \pre positions ascend, 0 <= position < steps()[step].entries[entry].length
  std::vector<Written> written(std::size_t step, std::int64_t entry,
                               std::span<const Position> positions) const;

  /// Rows of the buffer: the capacity, or where that is 0 the longest length of any entry.
  std::int64_t buffer_rows() const { return buffer_rows_; }

 private:
  /// Positions from `begin` on, up to the span above or the length, written by one step.
  /// The spans of an entry form a stack, newest on top, that each step shares with the one before;
  /// `below` is the next older span.
  struct Span {
    std::int64_t begin, generation, below;
    std::size_t step;
  };
  static constexpr std::int64_t kNone = -1;

  /// Each returns the new top of the stack whose top was `top`.
  std::int64_t with_tokens(std::int64_t top, std::int64_t begin, std::int64_t generation);
  std::int64_t without_tokens(std::int64_t top, std::int64_t length) const;

  std::vector<TimelineStep> steps_;
  std::vector<Span> spans_;
  std::vector<std::vector<std::int64_t>> newest_;  ///< [step][entry] into spans_, or kNone.
  std::int64_t buffer_rows_ = 0;
};

}  // namespace kvcheck::model
