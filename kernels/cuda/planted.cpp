// What each planted fault does wrong, and the tables that hold one.
#include "kernels/cuda/planted.h"

#include "kernels/cuda/kernel_table.h"
#include "kernels/cuda/planted_tables.h"

namespace kvcheck::kernels::device {
namespace {

constexpr DeviceFault kFaults[] = {
    {Fault::append_tokens_of_the_batch, "append-tokens-of-the-batch", "append",
     "stores as many rows of every entry as the longest one brings", "rows"},
    {Fault::append_element_too_many, "append-element-too-many", "append",
     "copies one element past the end of a row", "out_of_bounds"},
    {Fault::append_wrong_head, "append-wrong-head", "append",
     "stores the rows of KV head 0 for every head", "rows"},
    {Fault::append_offset_narrow, "append-offset-narrow", "append",
     "keeps 16 bits of a row's offset (in place of 32, so that small caches show it)", "rows"},
    {Fault::append_clamp_one_short, "append-clamp-one-short", "append", "clamps int8 codes to 126",
     "rows", true},
    {Fault::append_written_twice, "append-written-twice", "append",
     "lets two warps store the same row", "data_race"},
    {Fault::move_ascending_only, "move-ascending-only", "move",
     "walks up even where the rows move up, over rows that are still to be read", "rows"},
    {Fault::move_barrier_removed, "move-barrier-removed", "move",
     "writes a chunk before every thread has read its part of it", "data_race"},
    {Fault::move_barrier_in_a_branch, "move-barrier-in-a-branch", "move",
     "waits only in the threads that hold something of the last chunk", "barrier_divergence"},
    {Fault::move_row_too_many, "move-row-too-many", "move", "moves one row past the last", "rows"},
    {Fault::unfused_barrier_removed, "unfused-barrier-removed", "unfused",
     "reads the results of the other warps without waiting for them", "data_race"},
    {Fault::unfused_barrier_in_a_branch, "unfused-barrier-in-a-branch", "unfused",
     "has a barrier in the loop over a thread's keys", "barrier_divergence"},
    {Fault::unfused_half_a_mask, "unfused-half-a-mask", "unfused",
     "names 16 lanes in a shuffle that 32 take part in", "warp_mask"},
    {Fault::unfused_tail_uninitialised, "unfused-tail-uninitialised", "unfused",
     "reduces over one warp more than the block has", "uninitialised_read"},
    {Fault::unfused_window_one_wide, "unfused-window-one-wide", "unfused",
     "lets a query see one position more than its window", "values"},
    {Fault::unfused_empty_row_left, "unfused-empty-row-left", "unfused",
     "writes nothing for a query that sees nothing", "not_written"},
    {Fault::unfused_hidden_times_zero, "unfused-hidden-times-zero", "unfused",
     "multiplies hidden values by 0 in place of leaving them out", "values"},
    {Fault::unfused_wrong_head, "unfused-wrong-head", "unfused",
     "takes KV head n mod Nk for query head n, not n / group", "values"},
    {Fault::unfused_written_twice, "unfused-written-twice", "unfused",
     "writes the sum to the output before it writes the quotient", "written_twice"},
    {Fault::unfused_queries_of_the_batch, "unfused-queries-of-the-batch", "unfused",
     "answers as many queries of every entry as the longest one asks", "values"},
    {Fault::prefill_wait_missing, "prefill-wait-missing", "prefill",
     "reads a stage without waiting for its copies", "copy_in_flight"},
    {Fault::prefill_stage_too_early, "prefill-stage-too-early", "prefill",
     "copies into a stage before every warp has read it", "copy_in_flight"},
    {Fault::prefill_barrier_missing, "prefill-barrier-missing", "prefill",
     "waits for its own copies and not for those of the other threads", "data_race"},
    {Fault::prefill_barrier_in_a_branch, "prefill-barrier-in-a-branch", "prefill",
     "has a barrier that warps without a query leave out", "barrier_divergence"},
    {Fault::prefill_queries_overwritten, "prefill-queries-overwritten", "prefill",
     "writes outputs over queries that other lanes of the warp may still read", "data_race"},
    {Fault::prefill_first_tile_not_loaded, "prefill-first-tile-not-loaded", "prefill",
     "never loads the first tile of a band", "uninitialised_read"},
    {Fault::prefill_tail_uninitialised, "prefill-tail-uninitialised", "prefill",
     "leaves shared memory behind the head size as it was", "uninitialised_read"},
    {Fault::prefill_rows_past_the_end, "prefill-rows-past-the-end", "prefill",
     "stores the rows of a tile that are past the last query", "out_of_bounds"},
    {Fault::prefill_half_a_mask, "prefill-half-a-mask", "prefill",
     "names 16 lanes in a shuffle that 32 take part in", "warp_mask"},
    {Fault::prefill_no_swizzle, "prefill-no-swizzle", "prefill",
     "stores tiles without a swizzle, eight rows in the same banks", "bank_conflicts"},
    {Fault::prefill_rows_swapped, "prefill-rows-swapped", "prefill",
     "exchanges rows g and g + 8 in the fragments of the queries", "values"},
    {Fault::prefill_wrong_half, "prefill-wrong-half", "prefill",
     "takes the weights of keys 0 to 7 of a step for keys 8 to 15", "values"},
    {Fault::prefill_values_not_transposed, "prefill-values-not-transposed", "prefill",
     "loads the fragments of the values without the transposition", "values"},
    {Fault::prefill_diagonal_off_by_one, "prefill-diagonal-off-by-one", "prefill",
     "lets a query see the position after its own", "values"},
    {Fault::prefill_edge_tile_skipped, "prefill-edge-tile-skipped", "prefill",
     "skips the tile that the lower edge of the band cuts", "values"},
    {Fault::prefill_first_querys_band, "prefill-first-querys-band", "prefill",
     "gives all rows of a tile the band of its first query", "values"},
    {Fault::prefill_rescale_skipped, "prefill-rescale-skipped", "prefill",
     "keeps the outputs as they are where the maximum rises", "values"},
    {Fault::prefill_half_a_sum, "prefill-half-a-sum", "prefill",
     "adds the row sums of two lanes in place of four", "values"},
    {Fault::prefill_origin_by_length, "prefill-origin-by-length", "prefill",
     "counts positions back from the end, as if every query had brought a token", "values"},
    {Fault::prefill_hidden_value_kept, "prefill-hidden-value-kept", "prefill",
     "multiplies values that the mask hides from every query by 0", "values"},
};

}  // namespace

std::span<const DeviceFault> device_faults() { return kFaults; }

KernelTable planted_kernels(Fault fault) {
  KernelTable table = simt_kernels();
  plant_in_rows(fault, table);
  plant_in_prefill(fault, table);
  return table;
}

}  // namespace kvcheck::kernels::device
