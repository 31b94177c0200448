// Faults that can be planted into kernels of kernels/cuda, each by a template parameter, so that
// the healthy kernel holds nothing of them. list_device_faults() states what each does wrong.
#pragma once

namespace kvcheck::kernels::device {

enum class Fault {
  none,
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
};

/// Whether the instantiation with `planted` has the fault `one`.
consteval bool has(Fault planted, Fault one) { return planted == one; }

}  // namespace kvcheck::kernels::device
