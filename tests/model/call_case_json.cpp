// The text form of calls: what a one-node model needs.
#include <nlohmann/json.hpp>

#include "tests/model/call_cases.h"

namespace kvcheck::model {
namespace {

using nlohmann::json;

json tensor(std::string_view name, const TensorInfo& info) {
  return {{"name", name}, {"type", to_string(info.type)}, {"shape", info.shape}};
}

json tensor(std::string_view name, const std::optional<TensorInfo>& info) {
  return info ? tensor(name, *info) : json();
}

template <class T>
json with_values(json described, const T& values) {
  if (!described.is_null()) described["values"] = values;
  return described;
}

/// Without the places at the end that are empty.
json trimmed(json list) {
  while (!list.empty() && list.back().is_null()) list.erase(list.size() - 1);
  return list;
}

json output(bool asked, std::string_view name) { return asked ? json(name) : json(); }

json call_json(const GqaCall& call) {
  json attributes{{"num_heads", call.num_heads},
                  {"kv_num_heads", call.kv_num_heads},
                  {"causal", call.causal},
                  {"local_window_size", call.local_window_size},
                  {"sliding_window_cache", call.sliding_window_cache},
                  {"do_rotary", call.do_rotary},
                  {"qk_output", call.qk_output},
                  {"k_quant_type", call.k_quant_type},
                  {"v_quant_type", call.v_quant_type},
                  {"kv_cache_bit_width", call.kv_cache_bit_width}};
  json inputs{tensor("query", call.query),
              tensor("key", call.key),
              tensor("value", call.value),
              tensor("past_key", call.past_key),
              tensor("past_value", call.past_value),
              with_values(tensor("seqlens_k", call.seqlens_k), call.seqlens_k_values),
              with_values(tensor("total_sequence_length", call.total_sequence_length),
                          std::vector<std::int64_t>(
                              static_cast<std::size_t>(call.total_sequence_length.elements()),
                              call.total_sequence_length_value)),
              tensor("cos_cache", call.cos_cache),
              tensor("sin_cache", call.sin_cache),
              with_values(tensor("position_ids", call.position_ids), call.position_ids_values),
              tensor("attention_bias", call.attention_bias),
              tensor("head_sink", call.head_sink),
              tensor("k_scale", call.k_scale),
              tensor("v_scale", call.v_scale),
              tensor("q_norm_weight", call.q_norm_weight),
              tensor("k_norm_weight", call.k_norm_weight),
              with_values(tensor("query_seqlens", call.query_seqlens), call.query_seqlens_values)};
  json outputs{"output", output(call.present_key, "present_key"),
               output(call.present_value, "present_value"), output(call.output_qk, "output_qk")};
  return {{"operator", "GroupQueryAttention"},
          {"domain", "com.microsoft"},
          {"opset", 1},
          {"attributes", std::move(attributes)},
          {"inputs", trimmed(std::move(inputs))},
          {"outputs", trimmed(std::move(outputs))}};
}

json call_json(const AttentionCall& call) {
  json attributes = json::object();
  const auto add = [&](const char* name, const auto& value) {
    if (value) attributes[name] = *value;
  };
  add("q_num_heads", call.q_num_heads);
  add("kv_num_heads", call.kv_num_heads);
  add("scale", call.scale);
  add("softmax_precision", call.softmax_precision);
  add("left_window_size", call.left_window_size);
  add("right_window_size", call.right_window_size);
  attributes["qk_matmul_output_mode"] = call.qk_matmul_output_mode;
  json inputs{
      tensor("Q", call.q),
      tensor("K", call.k),
      tensor("V", call.v),
      tensor("attn_mask", call.attn_mask),
      tensor("past_key", call.past_key),
      tensor("past_value", call.past_value),
      with_values(tensor("nonpad_kv_seqlen", call.nonpad_kv_seqlen), call.nonpad_kv_seqlen_values)};
  // The mode counts only where its output is asked for.
  json outputs{"Y", output(call.present_key, "present_key"),
               output(call.present_value, "present_value"),
               output(call.qk_matmul_output_mode != 0, "qk_matmul_output")};
  return {{"operator", "Attention"},
          {"domain", ""},
          {"opset", call.opset},
          {"attributes", std::move(attributes)},
          {"inputs", trimmed(std::move(inputs))},
          {"outputs", trimmed(std::move(outputs))}};
}

std::string_view answer_name(OnnxRuntime answer, bool broken) {
  switch (answer) {
    case OnnxRuntime::agrees:
      return broken ? "refuses" : "accepts";
    case OnnxRuntime::accepts:
      return "accepts although broken";
    case OnnxRuntime::ends:
      return "ends";
    case OnnxRuntime::unasked:
      break;
  }
  return "unasked";
}

template <class Case>
void append(json& list, const std::vector<Case>& cases) {
  for (const Case& tested : cases) {
    if (tested.answer == OnnxRuntime::unasked) continue;
    list.push_back({{"name", tested.name},
                    {"call", call_json(tested.call)},
                    {"rule", tested.broken ? json(to_string(*tested.broken)) : json()},
                    {"answer", answer_name(tested.answer, tested.broken.has_value())},
                    {"phrase", tested.phrase}});
  }
}

}  // namespace

std::string call_cases_json() {
  json list = json::array();
  append(list, gqa_cases());
  append(list, attention_cases());
  return list.dump(1);
}

}  // namespace kvcheck::model
