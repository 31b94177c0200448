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
     "copies one element past the end of a row", "data_race"},
    {Fault::append_wrong_head, "append-wrong-head", "append",
     "stores the rows of KV head 0 for every head", "rows"},
    {Fault::append_offset_narrow, "append-offset-narrow", "append",
     "keeps 16 bits of a row's offset (in place of 32, so that small caches show it)", "rows"},
    {Fault::append_clamp_one_short, "append-clamp-one-short", "append", "clamps int8 codes to 126",
     "rows"},
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
};

}  // namespace

std::span<const DeviceFault> device_faults() { return kFaults; }

KernelTable planted_kernels(Fault fault) {
  KernelTable table = simt_kernels();
  plant_in_rows(fault, table);
  return table;
}

}  // namespace kvcheck::kernels::device
