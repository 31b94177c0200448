// The KV cache of the CPU kernels: its rows, its lengths, and the plan by which one step changes
// them.
//
// Four kinds of buffer behind one plan: `full` (row = position), `block` and `min_overflow` (evict
// rows; what stays drifts towards the end between compactions) and the concatenating cache of the
// attention operator, whose present is longer in each step. One step: plan, place, attention over
// rows_of, settle. A drifting step writes its new rows and nothing else, and allocates nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/cpu/entry_plan.h"
#include "kernels/cpu/eviction.h"
#include "kernels/cpu/planted/faults.h"
#include "kernels/cpu/row_store.h"
#include "kernels/target.h"

namespace kvcheck::kernels {

/// The rows that attention reads for one entry: row r holds position first_position + r.
struct EntryRows {
  RowView key, value;
  std::int64_t rows = 0;            ///< Rows that there are.
  std::int64_t live = 0;            ///< Rows [0, live) hold positions; the others hold anything.
  std::int64_t first_position = 0;  ///< Of row 0.
};

class KvCache {
 public:
  /// Bytes of a step's moves from which on the threads of the session share them. A thread moves
  /// about 10 GB/s, so this is some 25 us of work, and handing work to a pool that sleeps costs
  /// about as much (65 us in the slowest pool measured).
  static constexpr std::int64_t kParallelBytes = std::int64_t{256} << 10;

  /// \pre check_config(config) is empty. Refers to `config`
  explicit KvCache(const SessionConfig& config, Fault fault = Fault::none);

  const std::vector<std::int64_t>& lengths() const { return lengths_; }
  /// Rows of the buffer now.
  std::int64_t rows() const { return buffer_.rows(); }

  /// One plan per entry, valid until the next call. \pre check_step found nothing wrong with
  /// `tokens`
  std::span<const EntryPlan> plan(std::span<const std::int64_t> tokens);

  /// Puts the new rows where the plan wants them. \pre plan was called for this step
  void place(const NewRows& rows);

  /// What attention reads between place and settle.
  EntryRows rows_of(std::int64_t entry);

  /// Writes staged rows back and takes the new lengths.
  void settle();

  /// Why dropping the newest tokens[b] tokens is not possible; empty when it is.
  std::optional<std::string> why_not_rollback(std::span<const std::int64_t> tokens) const;
  /// \pre why_not_rollback(tokens) is empty
  void rollback(std::span<const std::int64_t> tokens);

  /// \pre check_load found nothing wrong
  void load(const LoadRequest& request);
  /// Overwrites rows [first_row[b], rows()) of every entry.
  void poison(double value, std::span<const std::int64_t> first_row);
  void poison(const PoisonRows& rows) { poison(rows.value, rows.first_row); }
  CacheRows present() const;

  /// Bytes of the rows that the cache keeps between steps.
  std::int64_t cache_bytes() const { return buffer_.key.bytes() + buffer_.value.bytes(); }
  /// Bytes of memory beside them: staging, and the other buffer where past and present are two.
  std::int64_t scratch_bytes() const;

 private:
  /// A run of rows on its way from one view to another, for all KV heads.
  struct Move {
    RowView from, to;
    std::int64_t from_row = 0, to_row = 0, count = 0;
  };

  void shape(KeyValueRows& rows, std::int64_t count) const;
  void reserve_staging();
  void clear_beyond(KeyValueRows& present, std::int64_t entry, std::int64_t first);
  void add_move(const RowView& from, std::int64_t from_row, const RowView& to, std::int64_t to_row,
                std::int64_t count);
  void run_moves();
  void append(const RowSource& source, const EntryPlan& plan, std::int64_t entry,
              const RowView& to) const;
  RowView staged_key(std::int64_t entry);
  RowView staged_value(std::int64_t entry);

  const SessionConfig& config_;
  Fault fault_;
  CacheKind kind_;
  ElementType type_;                      // Of what is stored.
  std::int64_t key_width_, value_width_;  // Elements of a stored row.
  KeyValueRows buffer_;
  KeyValueRows other_;  // Becomes the present of the next step where CacheKind::fresh_present.
  std::vector<std::int64_t> lengths_;
  std::vector<EntryPlan> plans_;
  bool settled_ = true;
  Arena staging_;                             // Staged entries one after the other, keys first.
  std::vector<std::int64_t> staging_offset_;  // Per entry.
  std::vector<Move> moves_;
  // Rows by which the next append goes astray after a rollback; zero but for a planted fault.
  std::vector<std::int64_t> astray_;
};

}  // namespace kvcheck::kernels
