// The rules of one call of GroupQueryAttention, and what ONNX Runtime says of a broken one.
//
// Source: contract of GroupQueryAttention, sections 1.5, 1.6 (CPU) and 3.8, checked against ONNX
// Runtime 1.32.0 by tests/tool/call_rules_test.py. Accepted although odd, as there: a total below
// the longest entry (but not under a bias), a window of 0 or below -1, values of seqlens_k beyond
// the windowed cache, ragged first prompts, trailing dimensions of the rotary caches and
// position_ids, rotary caches that are not used (their shapes are checked all the same), scales of
// an unquantised cache, f16 caches under f32 queries and the reverse.
#pragma once

#include <string_view>
#include <vector>

#include "model/calls/gqa_call.h"
#include "model/calls/rule_break.h"

namespace kvcheck::model {

enum class GqaRule {
  // Attributes.
  head_counts,         ///< num_heads and kv_num_heads between 1 and 2^31 - 1.
  heads_multiple,      ///< num_heads a multiple of kv_num_heads.
  causal_value,        ///< 0 or 1.
  causal_window,       ///< No window when causal is 0.
  quant_type_name,     ///< NONE, PER_TENSOR or PER_CHANNEL, in any case.
  quant_types_equal,   ///< The same for keys and values (CPU).
  bit_width,           ///< 4 or 8 when quantised.
  bit_width_unused,    ///< 0 when not.
  qk_output_value,     ///< 0, 1 or 2.
  window_positive,     ///< Windowed cache: local_window_size above 0.
  windowed_qk_output,  ///< Windowed cache: no output_qk (CPU).
  query_seqlens_causal,
  // Outputs.
  qk_output_missing,       ///< qk_output asks for an output that is not bound.
  qk_output_unasked,       ///< The converse; found at load, where the shape of the past is known.
  presents_together,       ///< Since 1.31.
  quantised_presents,      ///< A quantised cache needs them.
  windowed_presents,       ///< So does a windowed one.
  query_seqlens_presents,  ///< So does query_seqlens.
  // Which inputs there are, and their types.
  key_value_together,
  past_together,
  cos_sin_together,
  rotary_caches,   ///< do_rotary needs them.
  qk_norm,         ///< None on CPU.
  windowed_past,   ///< A windowed cache needs a past.
  quantised_past,  ///< So does a quantised one (CPU): the type of the cache is its type.
  query_seqlens_past,
  scales_missing,
  query_type,  ///< f32 or f16 (CPU).
  input_type,  ///< Every input of type T has that of the query.
  past_types_equal,
  cache_type,  ///< i8 for 8 bits, u8 for 4, else f32 or f16 (CPU).
  scale_type,  ///< f32.
  index_type,  ///< i32; position_ids i64.
  // Ranks and dimensions.
  dimensions,              ///< None is negative.
  query_rank,              ///< 3.
  key_value_rank,          ///< 3.
  past_rank,               ///< 4.
  rotary_rank,             ///< At least 2; fewer end the process.
  position_ids_rank,       ///< At least 2; fewer end the process.
  bias_rank,               ///< 4.
  sink_rank,               ///< 1.
  seqlens_rank,            ///< At least 1.
  batch_positive,          ///< An empty batch ends the process.
  hidden_size,             ///< A multiple of the heads in it.
  head_size_multiple,      ///< Of 8, and not 0, which ends the process.
  key_batch,               ///< key and value: batch of the query.
  value_length,            ///< That of key.
  key_hidden,              ///< Nk*H.
  value_hidden,            ///< That of key.
  length_without_past,     ///< Lk = S.
  length_with_past,        ///< Lk = S or 0.
  windowed_shared_kv,      ///< Windowed cache: Lk is not 0.
  query_seqlens_new_keys,  ///< query_seqlens: Lk = S.
  past_batch,
  past_heads,
  past_length,         ///< Equal for keys and values.
  past_head_size,      ///< H, or H/2 bytes.
  windowed_capacity,   ///< C >= W.
  windowed_head_size,  ///< Multiple of 16 for 8 bits, of 32 for 4.
  scale_count,
  seqlens_count,        ///< B elements.
  seqlens_shape,        ///< Each dimension 1 or B.
  query_seqlens_shape,  ///< (B).
  total_one_element,    ///< Rank 0, or 1 with one element.
  rotary_head_size,     ///< Multiple of 16 where rotary caches are given.
  rotary_shapes_equal,  ///< Since 1.31.
  rotary_width,         ///< At most H/2, multiple of 8.
  position_ids_batch,
  position_ids_length,  ///< At least S.
  bias_batch,
  bias_heads,
  bias_step,
  sink_count,
  // Lengths and other values.
  total_positive,
  step_empty,         ///< S is not 0; with query_seqlens it may be.
  chunk_batch,        ///< B = 1 when S > 1 and S is not the total; not with query_seqlens.
  total_covers_step,  ///< Unless windowed, total >= Lk.
  /// Unless windowed or with query_seqlens: total = C + Lk (growing cache) or at most C.
  /// Since 1.31;
  /// it covers two rules of 1.30, that shared KV needs total <= C, and that decode finds its past
  /// in
  /// the buffer ("exceeds the past buffer sequence length"), which no call reaches any more.
  total_by_cache,
  seqlens_range,         ///< At least 0; unless windowed, below max(C, total).
  seqlens_step,          ///< T >= S, but for a first prompt into a cache that is not windowed.
  rotary_rows,           ///< At least total.
  rotary_last_position,  ///< T - 1 within them, whatever position_ids say.
  position_ids_prompt,   ///< First prompt: element 0 and the S - 1 after it.
  position_ids_value,    ///< Else: flat element b*S + s.
  bias_total,
  /// With a bias, T <= total. ONNX Runtime asks it of a windowed cache alone; else it reads beyond
  /// the bias.
  bias_entries,
  query_seqlens_range,      ///< 0 <= Q <= min(S, T).
  query_seqlens_seqlens,    ///< seqlens_k is not negative.
  query_seqlens_total,      ///< T <= total.
  query_seqlens_past_rows,  ///< Unless windowed, T - Q <= C.
  query_seqlens_room        ///< Unless windowed, T - Q + S <= max(C, total).
};

using GqaRuleBreak = RuleBreak<GqaRule>;

/// Every rule that `call` breaks; empty = valid. Rules about lengths are looked at only where all
/// about shapes hold, and those only where all about presence, types and ranks hold. Any values
/// are allowed in the call; no arithmetic on them overflows.
std::vector<GqaRuleBreak> check(const GqaCall& call);

/// "heads_multiple" for GqaRule::heads_multiple.
std::string_view to_string(GqaRule rule);

/// A phrase of what ONNX Runtime 1.32.0 says; empty where the process ends instead, or where it
/// never sees such a call.
std::string_view phrase(GqaRule rule);

/// All rules, in the order of the enumeration.
const std::vector<GqaRule>& gqa_rules();

}  // namespace kvcheck::model
