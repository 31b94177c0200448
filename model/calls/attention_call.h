// One call of ONNX Attention, opset 23, 24 or 25, as far as its rules look at it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/calls/tensor_info.h"

namespace kvcheck::model {

/// Attributes, inputs and outputs under their names in the operator; contract, sections 2.1 and
/// 2.2. Attributes that take any value (is_causal, softcap) are left out. B = batch, Nq/Nk =
/// query/KV heads, Sq/Skv = queries/new keys, H/Hv = head sizes, P = past keys, T = P + Skv.
struct AttentionCall {
  int opset = 23;
  std::optional<std::int64_t> q_num_heads;   ///< For rank 3.
  std::optional<std::int64_t> kv_num_heads;  ///< For rank 3.
  std::optional<double> scale;
  std::optional<std::int64_t> softmax_precision;  ///< A type number of ONNX.
  std::int64_t qk_matmul_output_mode = 0;
  std::optional<std::int64_t> left_window_size;   ///< Opset 25.
  std::optional<std::int64_t> right_window_size;  ///< Opset 25.

  TensorInfo q;                                ///< (B, Nq, Sq, H) or (B, Sq, Nq*H).
  TensorInfo k;                                ///< (B, Nk, Skv, H) or (B, Skv, Nk*H).
  TensorInfo v;                                ///< (B, Nk, Skv, Hv) or (B, Skv, Nk*Hv).
  std::optional<TensorInfo> attn_mask;         ///< Right-aligned to (B, Nq, Sq, T).
  std::optional<TensorInfo> past_key;          ///< (B, Nk, P, H).
  std::optional<TensorInfo> past_value;        ///< (B, Nk, P, Hv).
  std::optional<TensorInfo> nonpad_kv_seqlen;  ///< (B); from opset 24 on.
  /// Row-major; values that lack are taken to be sound.
  std::vector<std::int64_t> nonpad_kv_seqlen_values;

  bool present_key = false;  ///< Whether the output is asked for.
  bool present_value = false;
};

}  // namespace kvcheck::model
