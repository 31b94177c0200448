// The cache timeline: what every batch entry holds after every step of a scenario.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/layout.h"
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
  /// Rows that hold live positions: L(T), or what a rollback in a ring has left of it.
  std::int64_t resident = 0;
  /// Oldest position from which on everything is resident; in row 0 but for a ring, pages and
  /// sinks (see Timeline::position_in_row).
  Position first_position;
  std::int64_t evicted = 0;  ///< Positions that the step evicts.
  bool staged = false;       ///< The contract needs a temporary buffer here.
  std::int64_t max_exact_rollback = 0;
  /// The rows are those of a sequence that had grown to this length, less the positions from
  /// `length` on: longer than `length` only after a rollback in a ring that had filled, until
  /// the sequence has grown back.
  std::int64_t reach = 0;
  /// False for a rollback whose rows are not where the shorter length needs them.
  bool rollback_exact = true;
};

/// All entries around one step.
struct TimelineStep {
  std::span<const EntryStep> entries;  ///< Of the timeline.
  /// False from an inexact rollback on: the contract does not say what the rows hold.
  bool defined = true;
  /// Why not, for people: "rollback of 3 at T=12 is not exact: length 9 needs position 3 in row 0,
  /// which position 6 has taken; the largest exact depth there is 2".
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

  /// Its steps refer to memory of its own, which moves along.
  Timeline(Timeline&&) = default;
  Timeline& operator=(Timeline&&) = default;

  const std::vector<TimelineStep>& steps() const { return steps_; }

  /// Generation of `position` of `entry` as the cache holds it after step `step`.
  /// \pre 0 <= position < steps()[step].entries[entry].length
  std::int64_t generation(std::size_t step, std::int64_t entry, Position position) const;

  /// How each of `positions` of `entry` came into the cache as it is after `step`; one walk.
  /// \pre positions ascend, 0 <= position < steps()[step].entries[entry].length
  std::vector<Written> written(std::size_t step, std::int64_t entry,
                               std::span<const Position> positions) const;

  /// The same into `all`, whose memory is used again.
  void written(std::size_t step, std::int64_t entry, std::span<const Position> positions,
               std::vector<Written>& all) const;

  /// The same of one position.
  Written written(std::size_t step, std::int64_t entry, Position position) const;

  /// What `row` of `entry` holds after step `step`; empty where no live position stands.
  /// \pre steps()[step].defined
  std::optional<Position> position_in_row(std::size_t step, std::int64_t entry, Row row) const;

  /// Where `position` stands; empty unless it is resident.
  /// \pre steps()[step].defined
  std::optional<Row> row_of(std::size_t step, std::int64_t entry, Position position) const;

  const Layout& layout() const { return *layout_; }

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

  const EntryStep& at(std::size_t step, std::int64_t entry) const {
    return steps_[step].entries[static_cast<std::size_t>(entry)];
  }
  std::int64_t newest(std::size_t step, std::int64_t entry) const {
    return newest_[step * steps_[step].entries.size() + static_cast<std::size_t>(entry)];
  }
  /// Takes `entry` through `step`; the new top of its stack. `lost` says why a rollback is not
  /// exact.
  std::int64_t advance(const Scenario& scenario, const Step& step, std::size_t b,
                       const EntryStep& before, std::int64_t top, EntryStep& entry,
                       std::string& lost);

  std::unique_ptr<const Layout> layout_;
  std::vector<TimelineStep> steps_;
  std::vector<EntryStep> entries_;  ///< [step][entry]
  std::vector<Span> spans_;
  std::vector<std::int64_t> newest_;  ///< [step][entry] into spans_, or kNone.
  std::int64_t buffer_rows_ = 0;
};

}  // namespace kvcheck::model
