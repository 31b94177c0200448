// The command `timeline`: the rows that a cache layout keeps, and what that allows a draft to do.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>

namespace kvcheck::properties {

struct TimelineOptions {
  std::int64_t capacity = 0;     ///< C, rows of the buffer; 0 = no limit (layout full only).
  std::int64_t window = 0;       ///< W, keys that a query sees; layout block: 1 <= W <= C.
  std::string layout = "block";  ///< "block" or "full".
  std::string steps;             ///< "8,4,-2,1": appends and rollbacks; empty = single tokens.
  std::int64_t until = 0;        ///< Last T without steps; 0 = C + 3 G + 1, at least 16.
  bool json = false;
};

/// Prints one row for each step, or for each T up to `until`: T, the resident rows L(T), the first
/// resident position, the positions that the step evicts, the largest exact rollback, the free
/// rows, a picture of the buffer; then what the layout means for drafts.
///
/// JSON: {capacity, window, layout, block (G; null for full),
///   rows [{step, append | rollback, T, resident, first_position, evicts (count of positions),
///          max_exact_rollback, free_rows (null without limit), stages, defined, why (if not)}],
///   drafts [{tokens, exact_lengths, of_lengths}] (absent for full): in one period of
///          of_lengths = G lengths of a filled cache, the number at which a step of that many
///          tokens may be dropped whole, and never stages}
///
/// Three facts about a block layout, with free = C - L(P) before a step of S tokens; all checked
/// exhaustively by tests/properties/commands/timeline_command_test.cpp:
///   all S can be dropped exactly          <=>  S <= free (the step evicts nothing)
///   all but the first can be dropped      <=>  S <= free, or free = 0 and S <= G
///                                         <=>  the step does not stage
///   for S >= 2 and any capacity some length stages: the one that ends at T = C + 1
///
/// Returns 0, or 254 with one message on `err`.
int timeline_command(const TimelineOptions& options, std::ostream& out, std::ostream& err);

}  // namespace kvcheck::properties
