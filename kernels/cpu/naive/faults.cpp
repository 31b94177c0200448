// The list of planted faults of cpu-naive.
#include "kernels/cpu/naive/faults.h"

#include <cstddef>

namespace kvcheck::kernels {
namespace {

struct Planted {
  Fault fault;
  const char* name;
  const char* kind;
  const char* statement;
};

// In the order of the enumeration.
constexpr Planted kPlanted[] = {
    {Fault::causal_skipped_single_query, "causal_skipped_single_query", "mask origin",
     "Skips the causal limit when a step with a past asks one query but brings several keys."},
    {Fault::causal_top_left_with_past, "causal_top_left_with_past", "mask origin",
     "Aligns the causal limit and the window top-left although there is a past."},
    {Fault::causal_bottom_right_by_total, "causal_bottom_right_by_total", "mask origin",
     "With a past, lets the last query meet the last key instead of counting from the past."},
    {Fault::causal_bottom_right_without_past, "causal_bottom_right_without_past", "mask origin",
     "Without a past, aligns the causal limit of attention bottom-right."},
    {Fault::nonpad_top_left, "nonpad_top_left", "mask origin",
     "Aligns the causal limit top-left although nonpad_kv_seqlen is given."},
    {Fault::nonpad_offset_clamped, "nonpad_offset_clamped", "mask origin",
     "Clamps a negative causal offset to 0, so that queries before the first key see keys."},
    {Fault::window_one_wide, "window_one_wide", "window edge",
     "Sees window_size keys besides the query's own."},
    {Fault::window_one_narrow, "window_one_narrow", "window edge",
     "Sees window_size - 1 keys, the query's own included."},
    {Fault::window_ignored_single_token, "window_ignored_single_token", "window edge",
     "Ignores the window in steps of a single token."},
    {Fault::self_excluded, "self_excluded", "window edge",
     "Sees the keys up to the one before the query's own."},
    {Fault::capacity_for_length, "capacity_for_length", "length confusion",
     "Anchors the causal limit at the buffer's capacity instead of nonpad_kv_seqlen."},
    {Fault::nonpad_limit_ignored, "nonpad_limit_ignored", "length confusion",
     "Without the causal limit, sees every row of the buffer past nonpad_kv_seqlen."},
    {Fault::batch_maximum_for_length, "batch_maximum_for_length", "length confusion",
     "Uses the longest length of the batch for every entry."},
    {Fault::append_at_longest, "append_at_longest", "length confusion",
     "Appends the rows of every entry where the longest entry appends."},
    {Fault::idle_entry_advances, "idle_entry_advances", "length confusion",
     "Counts one token for an entry that has none in the step."},
    {Fault::min_overflow_eviction, "min_overflow_eviction", "layout",
     "Evicts only as many rows as the step overflows, not whole blocks."},
    {Fault::compaction_one_row_short, "compaction_one_row_short", "layout",
     "Leaves the newest surviving row behind when it compacts."},
    {Fault::compaction_skipped, "compaction_skipped", "layout",
     "Evicts in its counters but does not move the surviving rows."},
    {Fault::compaction_copied_backward, "compaction_copied_backward", "layout",
     "Compacts overlapping rows from the last to the first."},
    {Fault::value_stale_after_compaction, "value_stale_after_compaction", "layout",
     "Moves values one row less than keys when it compacts."},
    {Fault::separate_past_not_copied, "separate_past_not_copied", "layout",
     "Does not copy the past into a separate present buffer."},
    {Fault::staging_skipped, "staging_skipped", "staging",
     "Evicts rows before the first queries of the same step have read them."},
    {Fault::write_back_oldest, "write_back_oldest", "staging",
     "Writes the oldest staged rows back instead of the newest."},
    {Fault::write_back_one_row_early, "write_back_one_row_early", "staging",
     "Writes staged rows back from one row before the surviving tail."},
    {Fault::rollback_always_accepted, "rollback_always_accepted", "rollback",
     "Accepts a rollback to a length whose rows are gone."},
    {Fault::rollback_one_too_many, "rollback_one_too_many", "rollback",
     "Drops one token more than asked."},
    {Fault::rollback_ignored, "rollback_ignored", "rollback", "Reports success and drops nothing."},
    {Fault::append_row_kept_by_rollback, "append_row_kept_by_rollback", "rollback",
     "Restores the length but appends next to the row after the dropped tokens."},
    {Fault::empty_row_mean, "empty_row_mean", "empty rows",
     "Gives the mean of all values to a query that sees no key."},
    {Fault::empty_row_nan, "empty_row_nan", "empty rows",
     "Divides by zero for a query that sees no key."},
    {Fault::reads_one_row_past, "reads_one_row_past", "unused rows",
     "Reads the row after the last live one with weight zero."},
    {Fault::masked_by_multiply, "masked_by_multiply", "unused rows",
     "Multiplies rows that are not visible by zero instead of leaving them out."},
    {Fault::head_modulo, "head_modulo", "head map",
     "Maps query head h to KV head h mod Nk instead of h / (Nq / Nk)."},
    {Fault::key_head_zero, "key_head_zero", "head map", "Takes the keys of KV head 0 for all."},
    {Fault::batch_entry_zero_rows, "batch_entry_zero_rows", "batch",
     "Reads the rows of entry 0 for every entry when lengths differ."},
    {Fault::mask_rank_three_by_batch, "mask_rank_three_by_batch", "mask tensor",
     "Takes the first extent of a mask of rank 3 for the batch instead of the heads."},
    {Fault::mask_first_row_for_all, "mask_first_row_for_all", "mask tensor",
     "Uses the mask row of the first query for every query."},
    {Fault::narrow_accumulation, "narrow_accumulation", "precision",
     "Sums weighted values in the element type, f16 or bf16, instead of f32."},
    {Fault::scale_ignored, "scale_ignored", "precision",
     "Scales by 1/sqrt(head_size) although another scale is given."},
    {Fault::sum_order_varies, "sum_order_varies", "nondeterminism",
     "Sums from the newest key to the oldest in every other session."},
    {Fault::chunk_reversed, "chunk_reversed", "step split",
     "Appends the tokens of a step in reversed order."},
    {Fault::chunk_first_position, "chunk_first_position", "step split",
     "Gives every query of a step the position of the first."},
};

}  // namespace

const std::vector<FaultInfo>& cpu_naive_faults() {
  static const std::vector<FaultInfo> faults = [] {
    std::vector<FaultInfo> list;
    for (const Planted& planted : kPlanted) {
      list.push_back({planted.name, "cpu-naive", planted.kind, planted.statement});
    }
    return list;
  }();
  return faults;
}

std::optional<Fault> cpu_naive_fault(std::string_view name) {
  for (const Planted& planted : kPlanted) {
    if (planted.name == name) return planted.fault;
  }
  return std::nullopt;
}

}  // namespace kvcheck::kernels
