// The command `timeline`: the rows that a cache layout keeps, and what that allows a draft to do.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>

namespace kvcheck::properties {

struct TimelineOptions {
  std::int64_t capacity = 0;     ///< C, rows of the buffer; 0 = no limit (layout full only).
  std::int64_t window = 0;       ///< W, keys that a query sees; 0 = none (layouts full and paged).
  std::string layout = "block";  ///< A model::LayoutKind.
  std::int64_t sinks = 0;        ///< Layout sinks: first positions that are never evicted.
  std::int64_t page_size = 0;    ///< Layout paged: rows of one page.
  std::string steps;             ///< "8,4,-2,1": appends and rollbacks; empty = single tokens.
  std::int64_t until = 0;        ///< Last T without steps; 0 = a few evictions, at least 16.
  bool json = false;
};

/// Prints one row for each step, or for each T up to `until`: T, the resident rows L(T), the first
/// resident position, the positions that the step evicts, the largest exact rollback, the free
/// rows, a picture of the buffer; then what the layout means for drafts.
///
/// JSON: {capacity, window, layout, sinks, page_size, block (G; null for other layouts),
///   rows [{step, append | rollback, T, resident, first_position, evicts (count of positions),
///          max_exact_rollback, free_rows (null without limit), stages, defined, why (if not),
///          buffer [position or null for each row] (buffers of at most 64 rows)}],
///   exact_now {T, up_to, from}, see timeline_answers.h,
///   drafts [{tokens, exact_lengths, of_lengths, capacity_for_drafts, capacity_without_staging}]
///          (absent where nothing is evicted): in one period of of_lengths lengths of a filled
///          cache, the number at which a step of that many tokens may be dropped whole, and never
///          stages; then the smallest capacities, see timeline_answers.h}
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
