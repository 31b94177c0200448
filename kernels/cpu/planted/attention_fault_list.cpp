// The faults in what a query sees and how it sums.
#include "kernels/cpu/planted/fault_list.h"

namespace kvcheck::kernels {
namespace {

constexpr PlantedFault kFaults[] = {
    {Fault::causal_skipped_single_query, "causal_skipped_single_query", kNaive, "mask origin", kRow,
     "C10",
     "Skips the causal limit when a step with a past asks one query but brings several keys."},
    {Fault::causal_top_left_with_past, "causal_top_left_with_past", kNaive, "mask origin", kRow,
     "C36 C37", "Aligns the causal limit and the window top-left although there is a past."},
    {Fault::causal_bottom_right_by_total, "causal_bottom_right_by_total", kNaive, "mask origin",
     kRow, "",
     "With a past, lets the last query meet the last key instead of counting from the past."},
    {Fault::causal_bottom_right_without_past, "causal_bottom_right_without_past", kNaive,
     "mask origin", kRow, "C10 C36",
     "Without a past, aligns the causal limit of attention bottom-right."},
    {Fault::nonpad_top_left, "nonpad_top_left", kNaive, "mask origin", kRow, "C07",
     "Aligns the causal limit top-left although nonpad_kv_seqlen is given."},
    {Fault::nonpad_offset_clamped, "nonpad_offset_clamped", kNaive, "mask origin", kRow, "C35 C37",
     "Clamps a negative causal offset to 0, so that queries before the first key see keys."},
    {Fault::window_one_wide, "window_one_wide", kNaive, "window edge", kRow, "C06 C45 C46 C47",
     "Sees window_size keys besides the query's own."},
    {Fault::window_one_narrow, "window_one_narrow", kNaive, "window edge", kRow, "C80",
     "Sees window_size - 1 keys, the query's own included."},
    {Fault::window_ignored_single_token, "window_ignored_single_token", kNaive, "window edge", kRow,
     "C50", "Ignores the window in steps of a single token."},
    {Fault::self_excluded, "self_excluded", kNaive, "window edge", kRow, "",
     "Sees the keys up to the one before the query's own."},
    {Fault::empty_row_mean, "empty_row_mean", kNaive, "empty rows", kRow, "C08 C28",
     "Gives the mean of all values to a query that sees no key."},
    {Fault::empty_row_nan, "empty_row_nan", kNaive, "empty rows", kRow, "C13 C41",
     "Divides by zero for a query that sees no key."},
    {Fault::reads_one_row_past, "reads_one_row_past", kNaive, "unused rows", kRow, "C18 C40 C41",
     "Reads the row after the last live one with weight zero."},
    {Fault::masked_by_multiply, "masked_by_multiply", kNaive, "unused rows", kRow, "C40 C41 C43",
     "Multiplies rows that are not visible by zero instead of leaving them out."},
    {Fault::head_modulo, "head_modulo", kNaive, "head map", kRow, "C26",
     "Maps query head h to KV head h mod Nk instead of h / (Nq / Nk)."},
    {Fault::key_head_zero, "key_head_zero", kNaive, "head map", kRow, "",
     "Takes the keys of KV head 0 for all."},
    {Fault::mask_rank_three_by_batch, "mask_rank_three_by_batch", kNaive, "mask tensor", kRow, "",
     "Takes the first extent of a mask of rank 3 for the batch instead of the heads."},
    {Fault::mask_first_row_for_all, "mask_first_row_for_all", kNaive, "mask tensor", kRow, "",
     "Uses the mask row of the first query for every query."},
    {Fault::narrow_accumulation, "narrow_accumulation", kNaive, "precision", kRow, "",
     "Sums weighted values in the element type, f16 or bf16, instead of f32."},
    {Fault::scale_ignored, "scale_ignored", kNaive, "precision", kRow, "",
     "Scales by 1/sqrt(head_size) although another scale is given."},
    {Fault::sum_order_varies, "sum_order_varies", kNaive, "nondeterminism", kRow, "C69",
     "Sums from the newest key to the oldest in every other session."},
};

}  // namespace

std::span<const PlantedFault> attention_fault_list() { return kFaults; }

}  // namespace kvcheck::kernels
