// Faults that can be planted into kernels of kernels/cuda, each by a template parameter, so that
// the healthy kernel holds nothing of them. list_device_faults() states what each does wrong.
#pragma once

namespace kvcheck::kernels::device {

enum class Fault {
  none,
  // prefill.cuh
  prefill_wait_missing,
  prefill_stage_too_early,
  prefill_barrier_missing,
  prefill_barrier_in_a_branch,
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

}  // namespace kvcheck::kernels::device
