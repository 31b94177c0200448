// Planted faults: small mistakes, each of a kind seen in real kernels, that the suite must find.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "kernels/registry.h"

namespace kvcheck::kernels {

/// One value per fault; planted_faults() states what each does wrong.
enum class Fault {
  none,
  // Mask origin.
  causal_skipped_single_query,
  causal_top_left_with_past,
  causal_bottom_right_by_total,
  causal_bottom_right_without_past,
  nonpad_top_left,
  nonpad_offset_clamped,
  // Window edge.
  window_one_wide,
  window_one_narrow,
  window_ignored_single_token,
  self_excluded,
  // Length confusion.
  capacity_for_length,
  nonpad_limit_ignored,
  batch_maximum_for_length,
  append_at_longest,
  idle_entry_advances,
  // Layout.
  min_overflow_eviction,
  compaction_one_row_short,
  compaction_skipped,
  compaction_copied_backward,
  value_stale_after_compaction,
  separate_past_not_copied,
  // Staging.
  staging_skipped,
  write_back_oldest,
  write_back_one_row_early,
  // Rollback.
  rollback_always_accepted,
  rollback_one_too_many,
  rollback_ignored,
  append_row_kept_by_rollback,
  // Empty rows.
  empty_row_mean,
  empty_row_nan,
  // Unused rows.
  reads_one_row_past,
  masked_by_multiply,
  // Heads and batch.
  head_modulo,
  key_head_zero,
  batch_entry_zero_rows,
  // Mask tensor.
  mask_rank_three_by_batch,
  mask_first_row_for_all,
  // Arithmetic.
  narrow_accumulation,
  scale_ignored,
  sum_order_varies,
  // Step split.
  chunk_reversed,
  chunk_first_position,
};

/// Every fault of every target.
const std::vector<FaultInfo>& planted_faults();
std::vector<FaultInfo> faults_of(std::string_view target);

/// The fault of that name in that target; empty where there is none.
std::optional<Fault> fault_of(std::string_view target, std::string_view name);

}  // namespace kvcheck::kernels
