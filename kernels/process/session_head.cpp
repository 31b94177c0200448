// Configurations as JSON, there and back.
#include "kernels/process/session_head.h"

#include <utility>

#include <fmt/format.h>

namespace kvcheck::kernels {
namespace {

using nlohmann::json;

constexpr const char* kConfig = "config";

template <class Config, class Visit>
void each_optional_field(Config& config, Visit& visit) {
  static const SessionConfig plain;
  visit("right_window_size", config.right_window_size, plain.right_window_size);
  visit("softcap", config.softcap, plain.softcap);
  visit("smooth_softmax", config.smooth_softmax, plain.smooth_softmax);
  visit.announced("head_sink", config.head_sink);
  visit.group("rotary", config.rotary, [](auto& rotary, auto& part) {
    part("interleaved", rotary.interleaved);
    part("position_ids", rotary.position_ids);
    part.tensor("rotary.cos", rotary.cos);
    part.tensor("rotary.sin", rotary.sin);
  });
  visit.group("qk_norm", config.qk_norm, [](auto& norm, auto& part) {
    part("epsilon", norm.epsilon);
    part.tensor("qk_norm.query_weight", norm.query_weight);
    part.tensor("qk_norm.key_weight", norm.key_weight);
  });
  visit.group("quantisation", config.quantisation, config.quantisation.quantised(),
              [](auto& quantisation, auto& part) {
                part("kind", quantisation.kind);
                part("per_channel", quantisation.per_channel);
                part.tensor("quantisation.key_scale", quantisation.key_scale);
                part.tensor("quantisation.value_scale", quantisation.value_scale);
              });
  visit("input_rank", config.input_rank, plain.input_rank);
  visit("packed_qkv", config.packed_qkv, plain.packed_qkv);
  visit("qk_output", config.qk_output, plain.qk_output);
  visit("softmax_precision", config.softmax_precision, plain.softmax_precision);
  visit("threads", config.threads, plain.threads);
  visit("isa", config.isa, plain.isa);
  visit.group("launch", config.launch, [](auto& launch, auto& part) {
    part("order", launch.order);
    part("seed", launch.seed);
    part("kernel", launch.kernel);
    part("threads", launch.threads);
    part("split_positions", launch.split_positions);
  });
  visit("record_stores", config.record_stores, plain.record_stores);
}

template <class Config, class Visit>
void each_field(Config& config, Visit& visit) {
  visit("op", config.op);
  visit("opset", config.opset);
  visit("batch", config.batch);
  visit("query_heads", config.query_heads);
  visit("kv_heads", config.kv_heads);
  visit("head_size", config.head_size);
  visit("value_head_size", config.value_head_size);
  visit("element_type", config.element_type);
  visit("layout", config.layout);
  visit("capacity", config.capacity);
  visit("window_size", config.window_size);
  visit("causal", config.causal);
  visit("nonpad_kv_seqlen", config.nonpad_kv_seqlen);
  visit("share_buffers", config.share_buffers);
  visit("mask", config.mask);
  visit("scale", config.scale);
  visit("initial_poison", config.initial_poison);
  each_optional_field(config, visit);
}

}  // namespace

FrameContent open_request(std::int64_t id, std::int64_t session, const SessionConfig& config) {
  json head = request_head("open", id, session);
  std::vector<NamedTensor> tensors;
  FieldWriter writer(head[kConfig] = json::object(), tensors);
  each_field(config, writer);
  if (!tensors.empty()) head["tensors"] = json_descriptions(tensors);
  return {head.dump(), std::move(tensors)};
}

std::variant<SessionConfig, Refusal> decode_open(const Fields& head, RequestTensors& tensors) {
  const Fields fields(head.at(kConfig), kConfig);
  SessionConfig config;
  FieldNames names;
  each_field(std::as_const(config), names);
  // A field that is passed over changes what is asked.
  if (const auto unknown = names.unknown_in(fields.object())) {
    return Refusal{fmt::format("{}.{}: this target does not know the field", kConfig, *unknown)};
  }
  FieldReader reader(fields, &tensors);
  each_field(config, reader);
  return config;
}

}  // namespace kvcheck::kernels
