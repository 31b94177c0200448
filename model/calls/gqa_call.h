// One call of com.microsoft GroupQueryAttention, as far as its rules look at it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/calls/tensor_info.h"

namespace kvcheck::model {

/// Attributes, inputs and outputs under their names in the operator; contract, sections 1.1 to 1.3.
/// Attributes that take any value (scale, softcap, rotary_interleaved, smooth_softmax) are left
/// out. B = batch, S = step tokens, Lk = new keys (S, or 0 for shared KV), N/Nk = query/KV heads,
/// H = head size, C = rows of the past.
struct GqaCall {
  std::int64_t num_heads = 1;
  std::int64_t kv_num_heads = 1;
  std::int64_t causal = 1;
  std::int64_t local_window_size = -1;    ///< Any negative value = no window.
  std::int64_t sliding_window_cache = 0;  ///< Exactly 1 turns it on.
  std::int64_t do_rotary = 0;             ///< Exactly 1 turns it on.
  std::int64_t qk_output = 0;
  std::string k_quant_type = "NONE";
  std::string v_quant_type = "NONE";
  std::int64_t kv_cache_bit_width = 0;  ///< 0 = absent.

  TensorInfo query;                          ///< (B, S, N*H); packed (B, S, (N + 2 Nk)*H).
  std::optional<TensorInfo> key;             ///< (B, Lk, Nk*H); absent with value = packed.
  std::optional<TensorInfo> value;           ///< As key.
  std::optional<TensorInfo> past_key;        ///< (B, Nk, C, H); last dimension H/2 for 4 bits.
  std::optional<TensorInfo> past_value;      ///< As past_key.
  TensorInfo seqlens_k;                      ///< B elements.
  TensorInfo total_sequence_length;          ///< One element.
  std::optional<TensorInfo> cos_cache;       ///< (rows, R/2), R <= H.
  std::optional<TensorInfo> sin_cache;       ///< As cos_cache.
  std::optional<TensorInfo> position_ids;    ///< (B, at least S).
  std::optional<TensorInfo> attention_bias;  ///< (B or 1, N or 1, S, total_sequence_length).
  std::optional<TensorInfo> head_sink;       ///< (N).
  std::optional<TensorInfo> k_scale;         ///< 1 or Nk*H elements.
  std::optional<TensorInfo> v_scale;         ///< As k_scale.
  std::optional<TensorInfo> q_norm_weight;   ///< (H).
  std::optional<TensorInfo> k_norm_weight;   ///< (H).
  std::optional<TensorInfo> query_seqlens;   ///< (B); since 1.32.

  /// Values of the inputs of the same name, row-major. Where they are fewer than the shape says,
  /// those that lack are taken to be sound.
  std::vector<std::int32_t> seqlens_k_values;
  std::int32_t total_sequence_length_value = 0;
  std::vector<std::int64_t> position_ids_values;
  std::vector<std::int32_t> query_seqlens_values;

  bool present_key = true;  ///< Whether the output is asked for.
  bool present_value = true;
  bool output_qk = false;
};

}  // namespace kvcheck::model
