// Names of the rules, and ONNX Runtime's words for them.
#include <algorithm>
#include <array>

#include "model/calls/gqa_rules.h"

namespace kvcheck::model {
namespace {

struct Entry {
  GqaRule rule;
  std::string_view name;
  std::string_view phrase;
};

using enum GqaRule;

constexpr std::array kEntries{
    Entry{head_counts, "head_counts", "num_heads > 0"},
    Entry{heads_multiple, "heads_multiple", "num_heads must be a multiple of kv_num_heads"},
    Entry{causal_value, "causal_value", "causal must be 0 or 1"},
    Entry{causal_window, "causal_window", "local_window_size must be -1 when causal is 0"},
    Entry{quant_type_name, "quant_type_name", "Invalid KV quantization type"},
    Entry{quant_types_equal, "quant_types_equal", "requires k_quant_type == v_quant_type"},
    Entry{bit_width, "bit_width", "must be 4 or 8 when quantization is enabled"},
    Entry{bit_width_unused, "bit_width_unused", "must be 0 when quantization is disabled"},
    Entry{qk_output_value, "qk_output_value", "unsupported value"},
    Entry{window_positive, "window_positive", "requires local_window_size > 0"},
    Entry{windowed_qk_output, "windowed_qk_output",
          "qk_output is not implemented with sliding_window_cache=1"},
    Entry{query_seqlens_causal, "query_seqlens_causal", "query_seqlens requires causal=1"},
    Entry{qk_output_missing, "qk_output_missing", "configured but output buffer was not provided"},
    Entry{qk_output_unasked, "qk_output_unasked",
          "provided but qk_output attribute was not configured"},
    Entry{presents_together, "presents_together",
          "present_key and present_value must both be provided or both omitted"},
    Entry{quantised_presents, "quantised_presents", "must be provided for quantized KV cache"},
    Entry{windowed_presents, "windowed_presents",
          "sliding_window_cache=1 requires the present_key and present_value outputs"},
    Entry{query_seqlens_presents, "query_seqlens_presents",
          "query_seqlens requires the present_key and present_value outputs"},
    Entry{key_value_together, "key_value_together", "shall be both present, or both absent"},
    Entry{past_together, "past_together", "shall be both present or both absent"},
    Entry{cos_sin_together, "cos_sin_together", "shall be both present or both absent"},
    Entry{rotary_caches, "rotary_caches", "must be provided when do_rotary is true"},
    Entry{qk_norm, "qk_norm", "q_norm_weight / k_norm_weight inputs are not supported"},
    Entry{windowed_past, "windowed_past",
          "sliding_window_cache=1 requires past_key and past_value to be present"},
    Entry{quantised_past, "quantised_past", "Tensor type mismatch"},
    Entry{query_seqlens_past, "query_seqlens_past",
          "query_seqlens requires past_key and past_value to be present"},
    Entry{scales_missing, "scales_missing", "_scale must be provided when"},
    Entry{query_type, "query_type", "Could not find an implementation"},
    Entry{input_type, "input_type", "bound to different types"},
    Entry{past_types_equal, "past_types_equal", "bound to different types"},
    Entry{cache_type, "cache_type", "Tensor type mismatch"},
    Entry{scale_type, "scale_type", "_scale) of operator"},
    Entry{index_type, "index_type", "of input parameter"},
    Entry{dimensions, "dimensions", ""},
    Entry{query_rank, "query_rank", "Input 'query' is expected to have 3 dimensions"},
    Entry{key_value_rank, "key_value_rank", "is expected to have 3 dimensions"},
    Entry{past_rank, "past_rank", "is expected to have 4 dimensions"},
    Entry{rotary_rank, "rotary_rank", ""},
    Entry{position_ids_rank, "position_ids_rank", ""},
    Entry{bias_rank, "bias_rank", "attention_bias must be a 4D tensor"},
    Entry{sink_rank, "sink_rank", "head_sink must be a 1D tensor"},
    Entry{seqlens_rank, "seqlens_rank", "seqlens_k must be at least 1D"},
    Entry{batch_positive, "batch_positive", ""},
    Entry{hidden_size, "hidden_size", "new_shape.Size()"},
    Entry{head_size_multiple, "head_size_multiple", "head_size must be a multiple of 8"},
    Entry{key_batch, "key_batch", "shall have same dim 0 (batch size)"},
    Entry{value_length, "value_length", "'key' and 'value' shall have same dim 1"},
    Entry{key_hidden, "key_hidden", "kv_hidden_size"},
    Entry{value_hidden, "value_hidden", "expected to have same hidden size as key"},
    Entry{length_without_past, "length_without_past",
          "must have the same sequence length when past_key is not provided"},
    Entry{length_with_past, "length_with_past", "or key sequence length must be 0 for shared KV"},
    Entry{windowed_shared_kv, "windowed_shared_kv",
          "is not supported when kv_sequence_length == 0"},
    Entry{query_seqlens_new_keys, "query_seqlens_new_keys",
          "query_seqlens requires new key/value with kv_sequence_length == sequence_length"},
    Entry{past_batch, "past_batch", "dimension 0 should be batch_size"},
    Entry{past_heads, "past_heads", "shall have kv_num_heads"},
    Entry{past_length, "past_length", "should have same dimension 2"},
    Entry{past_head_size, "past_head_size",
          "dimension 3 should match the packed KV head dimension"},
    Entry{windowed_capacity, "windowed_capacity", "must be at least local_window_size"},
    Entry{windowed_head_size, "windowed_head_size", "sliding_window_cache: head_size ("},
    Entry{scale_count, "scale_count", "_scale shape mismatch: expected"},
    Entry{seqlens_count, "seqlens_count", "seqlens_k must have batch_size"},
    Entry{seqlens_shape, "seqlens_shape", "seqlens_k has unexpected shape"},
    Entry{query_seqlens_shape, "query_seqlens_shape", "query_seqlens must be a 1D tensor of shape"},
    Entry{total_one_element, "total_one_element",
          "total_sequence_length tensor must be of one element"},
    Entry{rotary_head_size, "rotary_head_size", "head_size shall be a multiple of 16"},
    Entry{rotary_shapes_equal, "rotary_shapes_equal",
          "cos_cache and sin_cache must have the same shape"},
    Entry{rotary_width, "rotary_width", "must be <= head_size / 2 and a multiple of 8"},
    Entry{position_ids_batch, "position_ids_batch", "dimension 0 must be equal to the batch size"},
    Entry{position_ids_length, "position_ids_length",
          "dimension 1 must be at least sequence length"},
    Entry{bias_batch, "bias_batch", "dimension 0 must be equal to the batch size or 1"},
    Entry{bias_heads, "bias_heads", "dimension 1 must be equal to the num heads or 1"},
    Entry{bias_step, "bias_step", "dimension 2 must be equal to the sequence length"},
    Entry{sink_count, "sink_count", "head_sink dimension 0 must be equal to the num heads"},
    Entry{total_positive, "total_positive", "total_sequence_length must be positive"},
    Entry{step_empty, "step_empty", "sequence_length shall be 1 when it is not prompt"},
    Entry{chunk_batch, "chunk_batch",
          "batch_size must be 1 when sequence_length > 1 and past context is given"},
    Entry{total_covers_step, "total_covers_step",
          "must be at least kv_sequence_length for a non-sliding cache"},
    Entry{total_by_cache, "total_by_cache",
          "must equal past_sequence_length + kv_sequence_length for a dynamic cache"},
    Entry{seqlens_range, "seqlens_range", "is out of range [0, "},
    Entry{seqlens_step, "seqlens_step", "is too small for sequence_length"},
    Entry{rotary_rows, "rotary_rows", "dimension 0 shall not be less than total_sequence_length"},
    Entry{rotary_last_position, "rotary_last_position",
          "is out of range for rotary cache dimension 0"},
    Entry{position_ids_prompt, "position_ids_prompt", "exceeds cos/sin cache range"},
    Entry{position_ids_value, "position_ids_value", "is out of range [0, "},
    Entry{bias_total, "bias_total", "dimension 3 must be equal to total_sequence_length"},
    Entry{bias_entries, "bias_entries", "exceeds the attention_bias sequence dimension"},
    Entry{query_seqlens_range, "query_seqlens_range", "must be in [0, min(sequence_length"},
    Entry{query_seqlens_seqlens, "query_seqlens_seqlens",
          "must not be negative when query_seqlens is given"},
    Entry{query_seqlens_total, "query_seqlens_total", "exceeds total_sequence_length ("},
    Entry{query_seqlens_past_rows, "query_seqlens_past_rows",
          "but past_key and past_value hold only"},
    Entry{query_seqlens_room, "query_seqlens_room", "does not fit in the KV cache capacity"}};

constexpr const Entry& entry_of(GqaRule rule) { return kEntries[static_cast<std::size_t>(rule)]; }

static_assert(kEntries.size() == static_cast<std::size_t>(query_seqlens_room) + 1);
static_assert([] {
  for (std::size_t i = 0; i < kEntries.size(); ++i) {
    if (kEntries[i].rule != static_cast<GqaRule>(i)) return false;
  }
  return true;
}());

}  // namespace

std::string_view to_string(GqaRule rule) { return entry_of(rule).name; }

std::string_view phrase(GqaRule rule) { return entry_of(rule).phrase; }

const std::vector<GqaRule>& gqa_rules() {
  static const std::vector<GqaRule> rules = [] {
    std::vector<GqaRule> found;
    for (const Entry& entry : kEntries) found.push_back(entry.rule);
    return found;
  }();
  return rules;
}

}  // namespace kvcheck::model
