// The rules of one call of ONNX Attention, and what ONNX Runtime says of a broken one.
//
// Source: contract of ONNX Attention, sections 2.1 to 2.5, 2.7 and 4.8, checked against ONNX
// Runtime 1.32.0 by tests/tool/call_rules_test.py. Accepted although odd: any value of is_causal
// and softcap, a scale of 0 or below (by the operator), head counts beside inputs of rank 4 before
// opset 25 where they agree with the dimensions, nonpad_kv_seqlen with present outputs in opset 24,
// one present output alone before opset 25.
#pragma once

#include <string_view>
#include <vector>

#include "model/calls/attention_call.h"
#include "model/calls/rule_break.h"

namespace kvcheck::model {

/// What a call is held against.
enum class Strictness {
  operator_contract,  ///< The operator's own pages and schema.
  /// Besides what the CPU kernel of ONNX Runtime refuses. The kernel takes opset 23 and 24 with
  /// Q, K and V in one of f32 and f16 and a mask that is boolean or of that type; every other call
  /// runs the function body of the operator, which asks for less.
  onnxruntime_cpu
};

enum class AttentionRule {
  // The operator's rules: attributes, presence and types.
  opset,              ///< 23, 24 or 25.
  window_opset,       ///< The windows are attributes from opset 25 on.
  window_value,       ///< At least -1.
  output_mode,        ///< 0 to 3.
  softmax_precision,  ///< f32 1, f16 10, f64 11 or bf16 16.
  past_together,
  presents_together,  ///< Opset 25.
  nonpad_opset,       ///< nonpad_kv_seqlen from opset 24 on.
  nonpad_past,        ///< Not with a past.
  nonpad_presents,    ///< Opset 25: nor with present outputs.
  float_type,         ///< Q, K and V are of float types.
  query_key_type,     ///< Q and K have one type.
  past_type,          ///< past_key that of K, past_value that of V.
  nonpad_type,        ///< i64.
  // Its shapes.
  dimensions,  ///< None is negative.
  rank,        ///< Q, K and V have rank 3 or 4.
  ranks_equal,
  past_rank,              ///< 4.
  heads_given,            ///< Rank 3: both head counts, at least 1.
  heads_absent,           ///< Rank 4: none in opset 25.
  query_heads_dimension,  ///< Rank 4: q_num_heads that of Q, if given.
  kv_heads_dimension,     ///< Rank 4: kv_num_heads that of K, if given.
  hidden_size,            ///< Rank 3: a multiple of the head count.
  heads_positive,
  heads_multiple,    ///< Nq a multiple of Nk.
  batch,             ///< Q, K and V agree.
  value_heads,       ///< K and V agree.
  head_size,         ///< Q and K agree.
  key_value_length,  ///< K and V agree.
  past_batch,
  past_shape,    ///< Heads and head sizes of the past.
  past_length,   ///< past_key and past_value agree.
  mask_rank,     ///< 1 to 4.
  mask_batch,    ///< 1 or B.
  mask_heads,    ///< 1 or Nq.
  mask_queries,  ///< 1 or Sq.
  mask_keys,     ///< T or 1; from opset 24 on anything up to T.
  nonpad_rank,   ///< 1.
  nonpad_count,  ///< B.
  nonpad_range,  ///< Between 0 and T.
  mask_nonpad,   ///< At least the longest nonpad_kv_seqlen columns.
  // What the CPU kernel of ONNX Runtime refuses besides.
  cpu_type,           ///< bf16, or V of another type than Q; function body included.
  cpu_scale,          ///< Above 0 if given.
  cpu_sizes,          ///< No empty batch, step, key length or head size.
  cpu_past_presents,  ///< A past needs both present outputs.
  cpu_mask_rank,      ///< 2 to 4.
  cpu_mask_queries,   ///< Exactly Sq.
  cpu_mask_keys       ///< Exactly T.
};

using AttentionRuleBreak = RuleBreak<AttentionRule>;

/// Every rule that `call` breaks; empty = valid. Shapes are compared only where presence and ranks
/// hold. Any values are allowed in the call; no arithmetic on them overflows.
std::vector<AttentionRuleBreak> check(const AttentionCall& call, Strictness strictness);

/// "heads_multiple" for AttentionRule::heads_multiple.
std::string_view to_string(AttentionRule rule);

/// A phrase of what the CPU kernel of ONNX Runtime 1.32.0 says, or shape inference where no opset
/// with a kernel has the rule; empty where it accepts what the operator does not.
std::string_view phrase(AttentionRule rule);

/// All rules, in the order of the enumeration.
const std::vector<AttentionRule>& attention_rules();

}  // namespace kvcheck::model
