// Faults that can be planted into kernels of kernels/cuda, each by a template parameter, so that
// the healthy kernel holds nothing of them. device_faults() states what each does wrong.
#pragma once

#include <span>
#include <string_view>

namespace kvcheck::kernels::device {

enum class Fault {
  none,
  // append.cuh
  append_tokens_of_the_batch,
  append_element_too_many,
  append_wrong_head,
  append_offset_narrow,
  append_clamp_one_short,
  append_written_twice,
  // move.cuh
  move_ascending_only,
  move_barrier_removed,
  move_barrier_in_a_branch,
  move_row_too_many,
  // unfused.cuh
  unfused_barrier_removed,
  unfused_barrier_in_a_branch,
  unfused_half_a_mask,
  unfused_tail_uninitialised,
  unfused_window_one_wide,
  unfused_empty_row_left,
  unfused_hidden_times_zero,
  unfused_wrong_head,
  unfused_written_twice,
  unfused_queries_of_the_batch,
  // decode.cuh, merge.cuh, decode_matrix.cuh
  decode_bank_stride,
  decode_first_window,
  decode_idle_warp,
  decode_narrow_position,
  decode_no_empty_split,
  decode_no_score_sync,
  decode_no_wait,
  decode_no_warp_merge_sync,
  decode_shuffle_mask,
  decode_sink_each_split,
  decode_stage_reuse,
  decode_tail,
  decode_window_edge,
  merge_no_rescale,
  matrix_bank_stride,
  matrix_hidden_value,
  matrix_no_wait,
  matrix_rows_swapped,
  matrix_stage_reuse,
  // prefill.cuh
  prefill_wait_missing,
  prefill_stage_too_early,
  prefill_barrier_missing,
  prefill_barrier_in_a_branch,
  prefill_queries_overwritten,
  prefill_first_tile_not_loaded,
  prefill_tail_uninitialised,
  prefill_rows_past_the_end,
  prefill_half_a_mask,
  prefill_no_swizzle,
  prefill_rows_swapped,
  prefill_wrong_half,
  prefill_values_not_transposed,
  prefill_diagonal_off_by_one,
  prefill_edge_tile_skipped,
  prefill_first_querys_band,
  prefill_rescale_skipped,
  prefill_half_a_sum,
  prefill_origin_by_length,
  prefill_hidden_value_kept,
};

/// Whether the instantiation with `planted` has the fault `one`.
consteval bool has(Fault planted, Fault one) { return planted == one; }

/// Faults of one kernel, of which its launch function is instantiated with each.
template <Fault... kFaults>
struct FaultList {};

using AppendFaults = FaultList<Fault::append_tokens_of_the_batch, Fault::append_element_too_many,
                               Fault::append_wrong_head, Fault::append_offset_narrow,
                               Fault::append_clamp_one_short, Fault::append_written_twice>;
using MoveFaults = FaultList<Fault::move_ascending_only, Fault::move_barrier_removed,
                             Fault::move_barrier_in_a_branch, Fault::move_row_too_many>;
using UnfusedFaults = FaultList<Fault::unfused_barrier_removed, Fault::unfused_barrier_in_a_branch,
                                Fault::unfused_half_a_mask, Fault::unfused_tail_uninitialised,
                                Fault::unfused_window_one_wide, Fault::unfused_empty_row_left,
                                Fault::unfused_hidden_times_zero, Fault::unfused_wrong_head,
                                Fault::unfused_written_twice, Fault::unfused_queries_of_the_batch>;

/// Of decode.cuh and merge.cuh, planted into decode.
using DecodeFaults =
    FaultList<Fault::decode_bank_stride, Fault::decode_first_window, Fault::decode_idle_warp,
              Fault::decode_narrow_position, Fault::decode_no_empty_split,
              Fault::decode_no_score_sync, Fault::decode_no_wait, Fault::decode_no_warp_merge_sync,
              Fault::decode_shuffle_mask, Fault::decode_sink_each_split, Fault::decode_stage_reuse,
              Fault::decode_tail, Fault::decode_window_edge, Fault::merge_no_rescale>;
using MatrixFaults =
    FaultList<Fault::matrix_bank_stride, Fault::matrix_hidden_value, Fault::matrix_no_wait,
              Fault::matrix_rows_swapped, Fault::matrix_stage_reuse>;

using PrefillFaults = FaultList<
    Fault::prefill_wait_missing, Fault::prefill_stage_too_early, Fault::prefill_barrier_missing,
    Fault::prefill_barrier_in_a_branch, Fault::prefill_queries_overwritten,
    Fault::prefill_first_tile_not_loaded, Fault::prefill_tail_uninitialised,
    Fault::prefill_rows_past_the_end, Fault::prefill_half_a_mask, Fault::prefill_no_swizzle,
    Fault::prefill_rows_swapped, Fault::prefill_wrong_half, Fault::prefill_values_not_transposed,
    Fault::prefill_diagonal_off_by_one, Fault::prefill_edge_tile_skipped,
    Fault::prefill_first_querys_band, Fault::prefill_rescale_skipped, Fault::prefill_half_a_sum,
    Fault::prefill_origin_by_length, Fault::prefill_hidden_value_kept>;

struct DeviceFault {
  Fault fault;
  std::string_view name;
  std::string_view kernel;
  std::string_view statement;
  /// The kind of defect (kernels/simt/defect.h) that shows it; "values" or "rows" where nothing but
  /// the numbers are wrong, "bank_conflicts" where only that counter is.
  std::string_view caught_by;
  bool int8_cache = false;  ///< Whether it shows with int8 caches alone.
};

/// All of them, in the order of Fault.
std::span<const DeviceFault> device_faults();

}  // namespace kvcheck::kernels::device
