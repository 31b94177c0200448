// Configurations as JSON.
#include "kernels/process/session_head.h"

#include <nlohmann/json.hpp>

#include "kernels/process/protocol_json.h"

namespace kvcheck::kernels {
namespace {

using nlohmann::json;

void put_optional_fields(const SessionConfig& config, json& fields) {
  if (config.right_window_size != -1) fields["right_window_size"] = config.right_window_size;
  if (config.softcap != 0) fields["softcap"] = json_number(config.softcap);
  if (config.smooth_softmax) fields["smooth_softmax"] = true;
  if (config.head_sink) fields["head_sink"] = true;
  if (config.rotary) {
    fields["rotary"] = {{"interleaved", config.rotary->interleaved},
                        {"position_ids", config.rotary->position_ids}};
  }
  if (config.qk_norm) fields["qk_norm"] = {{"epsilon", json_number(config.qk_norm->epsilon)}};
  if (config.quantisation.quantised()) {
    fields["quantisation"] = {{"kind", config.quantisation.kind},
                              {"per_channel", config.quantisation.per_channel}};
  }
  if (config.input_rank != 4) fields["input_rank"] = config.input_rank;
  if (config.packed_qkv) fields["packed_qkv"] = true;
  if (config.qk_output != "none") fields["qk_output"] = config.qk_output;
  if (config.softmax_precision) fields["softmax_precision"] = to_string(*config.softmax_precision);
  if (config.threads != 0) fields["threads"] = config.threads;
  if (!config.isa.empty()) fields["isa"] = config.isa;
  if (config.launch) {
    fields["launch"] = {{"order", config.launch->order},
                        {"seed", config.launch->seed},
                        {"kernel", config.launch->kernel},
                        {"threads", config.launch->threads},
                        {"split_positions", config.launch->split_positions}};
  }
}

}  // namespace

std::vector<NamedTensor> session_tensors(const SessionConfig& config) {
  std::vector<NamedTensor> tensors;
  if (config.head_sink) tensors.push_back({"head_sink", &*config.head_sink});
  if (config.rotary) {
    tensors.push_back({"rotary.cos", &config.rotary->cos});
    tensors.push_back({"rotary.sin", &config.rotary->sin});
  }
  if (config.qk_norm) {
    tensors.push_back({"qk_norm.query_weight", &config.qk_norm->query_weight});
    tensors.push_back({"qk_norm.key_weight", &config.qk_norm->key_weight});
  }
  if (config.quantisation.quantised()) {
    tensors.push_back({"quantisation.key_scale", &config.quantisation.key_scale});
    tensors.push_back({"quantisation.value_scale", &config.quantisation.value_scale});
  }
  return tensors;
}

std::string open_head(std::int64_t id, std::int64_t session, const SessionConfig& config) {
  json head{{"kind", "open"}, {"id", id}, {"session", session}};
  json& fields = head["config"] = {{"op", config.op},
                                   {"opset", config.opset},
                                   {"batch", config.batch},
                                   {"query_heads", config.query_heads},
                                   {"kv_heads", config.kv_heads},
                                   {"head_size", config.head_size},
                                   {"value_head_size", config.value_head_size},
                                   {"element_type", to_string(config.element_type)},
                                   {"layout", config.layout},
                                   {"capacity", config.capacity},
                                   {"window_size", config.window_size},
                                   {"causal", config.causal},
                                   {"nonpad_kv_seqlen", config.nonpad_kv_seqlen},
                                   {"share_buffers", config.share_buffers},
                                   {"mask", config.mask},
                                   {"scale", json_number(config.scale)},
                                   {"initial_poison", json_number(config.initial_poison)}};
  put_optional_fields(config, fields);
  const std::vector<NamedTensor> tensors = session_tensors(config);
  if (!tensors.empty()) head["tensors"] = json_descriptions(tensors);
  return head.dump();
}

}  // namespace kvcheck::kernels
