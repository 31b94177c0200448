// Types, shapes and values of a call, as the rules of the operators look at them.
#include <cstring>

#include "properties/calls/call_of.h"

namespace kvcheck::properties {
namespace {

using kernels::ElementType;
using kernels::OperatorCall;
using kernels::Tensor;

model::TensorType type_of(ElementType type) {
  switch (type) {
    case ElementType::f32:
      return model::TensorType::f32;
    case ElementType::f16:
      return model::TensorType::f16;
    case ElementType::bf16:
      return model::TensorType::bf16;
    case ElementType::f64:
      return model::TensorType::f64;
    case ElementType::boolean:
      return model::TensorType::boolean;
    case ElementType::i8:
      return model::TensorType::i8;
    case ElementType::u8:
      return model::TensorType::u8;
    case ElementType::f8e4m3:
      return model::TensorType::fp8;
    case ElementType::i64:
      return model::TensorType::i64;
    case ElementType::i32:
      return model::TensorType::i32;
  }
  return model::TensorType::f32;
}

model::TensorInfo info_of(const Tensor& tensor) { return {type_of(tensor.type), tensor.shape}; }

void take(const OperatorCall& call, const char* name, std::optional<model::TensorInfo>& into) {
  if (const auto* input = call.find(name)) into = info_of(input->tensor);
}

void take(const OperatorCall& call, const char* name, model::TensorInfo& into) {
  if (const auto* input = call.find(name)) into = info_of(input->tensor);
}

template <class Attribute, class Into>
void take_attribute(const OperatorCall& call, const char* name, Into& into) {
  const auto found = call.attributes.find(name);
  if (found == call.attributes.end()) return;
  if (const auto* value = std::get_if<Attribute>(&found->second)) into = *value;
}

/// Whole numbers of a tensor that holds them; none of any other type.
template <class Number>
std::vector<Number> values_of(const OperatorCall& call, const char* name) {
  constexpr ElementType kType = sizeof(Number) == 4 ? ElementType::i32 : ElementType::i64;
  const auto* input = call.find(name);
  if (input == nullptr || input->tensor.type != kType) return {};
  std::vector<Number> values(input->tensor.bytes.size() / sizeof(Number));
  if (!values.empty()) {
    std::memcpy(values.data(), input->tensor.bytes.data(), values.size() * sizeof(Number));
  }
  return values;
}

bool asks(const OperatorCall& call, const char* output) {
  for (const auto& name : call.outputs) {
    if (name == output) return true;
  }
  return false;
}

}  // namespace

model::GqaCall gqa_call_info(const OperatorCall& call) {
  model::GqaCall info;
  take_attribute<std::int64_t>(call, "num_heads", info.num_heads);
  take_attribute<std::int64_t>(call, "kv_num_heads", info.kv_num_heads);
  take_attribute<std::int64_t>(call, "causal", info.causal);
  take_attribute<std::int64_t>(call, "local_window_size", info.local_window_size);
  take_attribute<std::int64_t>(call, "sliding_window_cache", info.sliding_window_cache);
  take_attribute<std::int64_t>(call, "do_rotary", info.do_rotary);
  take_attribute<std::int64_t>(call, "qk_output", info.qk_output);
  take_attribute<std::string>(call, "k_quant_type", info.k_quant_type);
  take_attribute<std::string>(call, "v_quant_type", info.v_quant_type);
  take_attribute<std::int64_t>(call, "kv_cache_bit_width", info.kv_cache_bit_width);
  take(call, "query", info.query);
  take(call, "key", info.key);
  take(call, "value", info.value);
  take(call, "past_key", info.past_key);
  take(call, "past_value", info.past_value);
  take(call, "seqlens_k", info.seqlens_k);
  take(call, "total_sequence_length", info.total_sequence_length);
  take(call, "cos_cache", info.cos_cache);
  take(call, "sin_cache", info.sin_cache);
  take(call, "position_ids", info.position_ids);
  take(call, "attention_bias", info.attention_bias);
  take(call, "head_sink", info.head_sink);
  take(call, "k_scale", info.k_scale);
  take(call, "v_scale", info.v_scale);
  take(call, "q_norm_weight", info.q_norm_weight);
  take(call, "k_norm_weight", info.k_norm_weight);
  take(call, "query_seqlens", info.query_seqlens);
  info.seqlens_k_values = values_of<std::int32_t>(call, "seqlens_k");
  const auto total = values_of<std::int32_t>(call, "total_sequence_length");
  if (!total.empty()) info.total_sequence_length_value = total.front();
  info.position_ids_values = values_of<std::int64_t>(call, "position_ids");
  info.query_seqlens_values = values_of<std::int32_t>(call, "query_seqlens");
  info.present_key = asks(call, "present_key");
  info.present_value = asks(call, "present_value");
  info.output_qk = asks(call, "output_qk");
  return info;
}

model::AttentionCall attention_call_info(const OperatorCall& call) {
  model::AttentionCall info;
  info.opset = call.opset;
  take_attribute<std::int64_t>(call, "q_num_heads", info.q_num_heads);
  take_attribute<std::int64_t>(call, "kv_num_heads", info.kv_num_heads);
  take_attribute<double>(call, "scale", info.scale);
  take_attribute<std::int64_t>(call, "softmax_precision", info.softmax_precision);
  take_attribute<std::int64_t>(call, "qk_matmul_output_mode", info.qk_matmul_output_mode);
  take_attribute<std::int64_t>(call, "left_window_size", info.left_window_size);
  take_attribute<std::int64_t>(call, "right_window_size", info.right_window_size);
  take(call, "Q", info.q);
  take(call, "K", info.k);
  take(call, "V", info.v);
  take(call, "attn_mask", info.attn_mask);
  take(call, "past_key", info.past_key);
  take(call, "past_value", info.past_value);
  take(call, "nonpad_kv_seqlen", info.nonpad_kv_seqlen);
  info.nonpad_kv_seqlen_values = values_of<std::int64_t>(call, "nonpad_kv_seqlen");
  info.present_key = asks(call, "present_key");
  info.present_value = asks(call, "present_value");
  return info;
}

}  // namespace kvcheck::properties
