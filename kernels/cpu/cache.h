// The KV cache of cpu-naive: its rows, its lengths, and the plan by which one step changes them.
//
// Three kinds of buffer behind one plan: `full` (row = position), `block` (evicts blocks, rows
// drift towards the end between compactions) and the concatenating cache of the attention
// operator, whose present is a new and longer buffer in each step.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/cpu/eviction.h"
#include "kernels/cpu/faults.h"
#include "kernels/cpu/row_store.h"
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

/// The rows that attention reads for one entry: row r of `entry` holds first_position + r.
struct EntryRows {
  const KeyValueRows* rows = nullptr;
  std::int64_t entry = 0;
  std::int64_t first_position = 0;
};

class KvCache {
 public:
  /// \pre check_config(config) is empty
  explicit KvCache(const SessionConfig& config, Fault fault = Fault::none);

  const std::vector<std::int64_t>& lengths() const { return lengths_; }
  /// Rows of the buffer now.
  std::int64_t rows() const { return buffer_.rows(); }

  /// One plan per entry. \pre check_step found nothing wrong with `tokens`
  std::vector<EntryPlan> plan(std::span<const std::int64_t> tokens) const;

  /// Puts the new rows where the plan wants them. key [B,N,Nk,H], value [B,N,Nk,Hv].
  void place(std::span<const EntryPlan> plans, const Tensor& key, const Tensor& value);

  /// What attention reads between place and settle.
  EntryRows rows_of(std::int64_t entry, const EntryPlan& plan) const;

  /// Writes staged rows back and takes the new lengths.
  void settle(std::span<const EntryPlan> plans);

  /// Why dropping the newest tokens[b] tokens is not possible; empty when it is.
  std::optional<std::string> why_not_rollback(std::span<const std::int64_t> tokens) const;
  /// \pre why_not_rollback(tokens) is empty
  void rollback(std::span<const std::int64_t> tokens);

  /// \pre check_load found nothing wrong
  void load(const LoadRequest& request);
  /// Overwrites rows [first_row[b], rows()) of every entry.
  void poison(const PoisonRows& poison);
  CacheRows present() const { return {buffer_.key.tensor(), buffer_.value.tensor()}; }

 private:
  KeyValueRows new_rows(std::int64_t entries, std::int64_t rows) const;
  void compact(const EntryPlan& plan, std::int64_t entry, const KeyValueRows& past,
               KeyValueRows& present) const;
  void append(const EntryPlan& plan, std::int64_t entry, const Tensor& key, const Tensor& value,
              KeyValueRows& rows, std::int64_t rows_entry) const;

  SessionConfig config_;
  Fault fault_;
  Eviction eviction_;
  bool concatenates_;   // attention with a past: present has exactly T rows.
  bool fresh_present_;  // Past and present are different buffers.
  KeyValueRows buffer_;
  std::vector<std::int64_t> lengths_;
  std::vector<std::optional<KeyValueRows>> staging_;  // Per entry, between place and settle.
  // Rows by which the next append goes astray after a rollback; zero but for a planted fault.
  std::vector<std::int64_t> astray_;
};

}  // namespace kvcheck::kernels
