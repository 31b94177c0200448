// The faults in where rows lie and how many there are.
#include "kernels/cpu/planted/fault_list.h"

namespace kvcheck::kernels {
namespace {

constexpr PlantedFault kFaults[] = {
    {Fault::capacity_for_length, "capacity_for_length", kNaive, "length confusion", kRow, "C30 C31",
     "Anchors the causal limit at the buffer's capacity instead of nonpad_kv_seqlen."},
    {Fault::nonpad_limit_ignored, "nonpad_limit_ignored", kNaive, "length confusion", kRow,
     "C40 C43", "Without the causal limit, sees every row of the buffer past nonpad_kv_seqlen."},
    {Fault::batch_maximum_for_length, "batch_maximum_for_length", kNaive, "length confusion", kRow,
     "C01", "Uses the longest length of the batch for every entry."},
    {Fault::append_at_longest, "append_at_longest", kNaive, "length confusion", kRow, "C81",
     "Appends the rows of every entry where the longest entry appends."},
    {Fault::idle_entry_advances, "idle_entry_advances", kNaive, "length confusion", kWhole, "",
     "Counts one token for an entry that has none in the step."},
    {Fault::min_overflow_eviction, "min_overflow_eviction", kNaive, "layout", kRow, "C01",
     "Evicts only as many rows as the step overflows, not whole blocks."},
    {Fault::compaction_one_row_short, "compaction_one_row_short", kNaive, "layout", kRow, "",
     "Leaves the newest surviving row behind when it compacts."},
    {Fault::compaction_skipped, "compaction_skipped", kNaive, "layout", kRow, "",
     "Evicts in its counters but does not move the surviving rows."},
    {Fault::compaction_copied_backward, "compaction_copied_backward", kNaive, "layout", kRow, "C62",
     "Compacts overlapping rows from the last to the first."},
    {Fault::value_stale_after_compaction, "value_stale_after_compaction", kNaive, "layout", kRow,
     "", "Moves values one row less than keys when it compacts."},
    {Fault::separate_past_not_copied, "separate_past_not_copied", kNaive, "layout", kRow, "C19 C34",
     "Does not copy the past into a separate present buffer."},
    {Fault::staging_skipped, "staging_skipped", kNaive, "staging", kRow, "C04 C59",
     "Evicts rows before the first queries of the same step have read them."},
    {Fault::write_back_oldest, "write_back_oldest", kNaive, "staging", kRow, "",
     "Writes the oldest staged rows back instead of the newest."},
    {Fault::write_back_one_row_early, "write_back_one_row_early", kNaive, "staging", kRow, "",
     "Writes staged rows back from one row before the surviving tail."},
    {Fault::rollback_always_accepted, "rollback_always_accepted", kNaive, "rollback", kWhole,
     "C02 C73", "Accepts a rollback to a length whose rows are gone."},
    {Fault::rollback_one_too_many, "rollback_one_too_many", kNaive, "rollback", kWhole, "C83",
     "Drops one token more than asked."},
    {Fault::rollback_ignored, "rollback_ignored", kNaive, "rollback", kWhole, "C78 C83",
     "Reports success and drops nothing."},
    {Fault::append_row_kept_by_rollback, "append_row_kept_by_rollback", kNaive, "rollback", kWhole,
     "C76", "Restores the length but appends next to the row after the dropped tokens."},
    {Fault::batch_entry_zero_rows, "batch_entry_zero_rows", kNaive, "batch", kRow, "C51",
     "Reads the rows of entry 0 for every entry when lengths differ."},
    {Fault::chunk_reversed, "chunk_reversed", kNaive, "step split", kRow, "",
     "Appends the tokens of a step in reversed order."},
    {Fault::chunk_first_position, "chunk_first_position", kNaive, "step split", kRow, "",
     "Gives every query of a step the position of the first."},
};

}  // namespace

std::span<const PlantedFault> cache_fault_list() { return kFaults; }

}  // namespace kvcheck::kernels
