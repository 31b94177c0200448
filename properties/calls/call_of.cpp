// From the tensors of a step to the inputs of the operator.
#include "properties/calls/call_of.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "model/fill.h"
#include "model/timeline.h"
#include "properties/convert.h"
#include "properties/requests.h"

namespace kvcheck::properties {
namespace {

using kernels::ElementType;
using kernels::OperatorCall;
using kernels::SessionConfig;
using kernels::StepRequest;
using kernels::Tensor;
using model::Scenario;
using Shape = std::vector<std::int64_t>;

Tensor integers(ElementType type, Shape shape, const std::vector<std::int64_t>& values) {
  Tensor tensor = Tensor::zeros(type, std::move(shape));
  std::byte* where = tensor.bytes.data();
  for (const std::int64_t value : values) {
    const auto narrow = static_cast<std::int32_t>(value);
    const std::size_t width = kernels::element_bytes(type);
    std::memcpy(where, type == ElementType::i32 ? static_cast<const void*>(&narrow) : &value,
                width);
    where += width;
  }
  return tensor;
}

/// The same elements under another shape.
Tensor reshaped(Tensor tensor, Shape shape) {
  tensor.shape = std::move(shape);
  return tensor;
}

/// [B,S,N,H] as (B, S, N*H).
Tensor merged_heads(Tensor tensor) {
  const Shape s = tensor.shape;
  return reshaped(std::move(tensor), {s[0], s[1], s[2] * s[3]});
}

/// [B,S,N,H] as [B,N,S,H].
Tensor heads_first(const Tensor& tensor) {
  const Shape& s = tensor.shape;
  Tensor result = Tensor::zeros(tensor.type, {s[0], s[2], s[1], s[3]});
  const auto row = static_cast<std::size_t>(s[3]) * kernels::element_bytes(tensor.type);
  for (std::int64_t b = 0; b < s[0]; ++b) {
    for (std::int64_t i = 0; i < s[1]; ++i) {
      for (std::int64_t h = 0; h < s[2]; ++h) {
        const auto from = static_cast<std::size_t>((b * s[1] + i) * s[2] + h);
        const auto to = static_cast<std::size_t>((b * s[2] + h) * s[1] + i);
        std::memcpy(result.bytes.data() + to * row, tensor.bytes.data() + from * row, row);
      }
    }
  }
  return result;
}

/// query, key and value of (B, S, ...) side by side in the last dimension.
Tensor packed(const Tensor& query, const Tensor& key, const Tensor& value) {
  const std::int64_t rows = query.shape[0] * query.shape[1];
  Tensor result = Tensor::zeros(
      query.type, {query.shape[0], query.shape[1],
                   query.shape[2] * query.shape[3] + 2 * key.shape[2] * key.shape[3]});
  std::byte* where = result.bytes.data();
  for (std::int64_t r = 0; r < rows; ++r) {
    for (const Tensor* part : {&query, &key, &value}) {
      const std::size_t width = part->bytes.size() / static_cast<std::size_t>(rows);
      std::memcpy(where, part->bytes.data() + static_cast<std::size_t>(r) * width, width);
      where += width;
    }
  }
  return result;
}

/// The scenario's last append behind a loaded past; nothing where it has none or is ragged.
std::variant<Scenario, NoCall> last_step(const Scenario& scenario) {
  const auto* append = std::get_if<model::Append>(&scenario.steps.back());
  if (append == nullptr) return NoCall{"the last step is no append"};
  const auto uniform = [](const std::vector<std::int64_t>& counts) {
    return std::all_of(counts.begin(), counts.end(),
                       [&](std::int64_t n) { return n == counts.front(); });
  };
  if (!uniform(append->tokens) || !uniform(append->queries)) {
    return NoCall{"the last step is ragged"};
  }
  if (append->tokens.front() == 0 || append->queries.front() == 0) {
    return NoCall{"the last step appends nothing or asks nothing"};
  }
  const model::Timeline timeline(scenario);
  if (!timeline.steps().back().defined) return NoCall{"the last step is not defined"};
  Scenario last = scenario;
  last.steps.clear();
  model::Past past;
  for (const auto& entry : timeline.steps().back().entries) past.tokens.push_back(entry.past);
  const auto [least, most] = std::minmax_element(past.tokens.begin(), past.tokens.end());
  const bool concatenates = scenario.op == model::Operator::attention && !scenario.nonpad_kv_seqlen;
  if (concatenates && *least != *most) return NoCall{"the entries have pasts of their own"};
  if (scenario.op == model::Operator::gqa && scenario.batch > 1 && *most > 0 &&
      append->tokens.front() > 1) {
    return NoCall{"several tokens behind a past of a batch need query_seqlens"};
  }
  if (*least == 0 && *most > 0) return NoCall{"some entries have no past"};
  if (*most > 0) last.steps.emplace_back(past);
  model::Append step = *append;
  step.generation = 0;
  last.steps.emplace_back(step);
  return last;
}

class CallBuilder {
 public:
  explicit CallBuilder(const Scenario& s)
      : s_(s),
        timeline_(s_),
        fill_(s_, timeline_),
        config_(session_config(s_, timeline_, 0)),
        request_(step_request(s_, timeline_, fill_, s_.steps.size() - 1)) {}

  OperatorCall gqa() {
    call_.op = "gqa";
    call_.opset = 1;
    gqa_attributes();
    if (s_.packed_qkv) {
      add("query", packed(request_.query, request_.key, request_.value));
    } else {
      add("query", merged_heads(request_.query));
      add("key", merged_heads(request_.key));
      add("value", merged_heads(request_.value));
    }
    kernels::LoadRequest past = past_rows();
    add("past_key", std::move(past.rows.key));
    add("past_value", std::move(past.rows.value));
    std::vector<std::int64_t> last;
    std::int64_t total = 0;
    for (const auto& entry : timeline_.steps().back().entries) {
      last.push_back(entry.length - 1);
      total = std::max(total, entry.length);
    }
    add("seqlens_k", integers(ElementType::i32, {s_.batch}, last));
    add("total_sequence_length", integers(ElementType::i32, {1}, {total}));
    if (config_.rotary) {
      add("cos_cache", config_.rotary->cos);
      add("sin_cache", config_.rotary->sin);
    }
    if (request_.position_ids) add("position_ids", *request_.position_ids);
    if (request_.mask) add("attention_bias", *request_.mask);
    if (config_.head_sink) add("head_sink", *config_.head_sink);
    if (config_.quantisation.quantised()) {
      add("k_scale", config_.quantisation.key_scale);
      add("v_scale", config_.quantisation.value_scale);
    }
    if (config_.qk_norm) {
      add("q_norm_weight", config_.qk_norm->query_weight);
      add("k_norm_weight", config_.qk_norm->key_weight);
    }
    call_.outputs = {"output", "present_key", "present_value"};
    if (s_.qk_output != model::QkOutput::none) call_.outputs.emplace_back("output_qk");
    return std::move(call_);
  }

  OperatorCall attention() {
    call_.op = "attention";
    call_.opset = s_.opset;
    attention_attributes();
    const bool has_past = s_.steps.size() > 1;
    if (s_.nonpad_kv_seqlen) {
      add("Q", heads_first(request_.query));
      kernels::LoadRequest all = whole_buffer();
      add("K", std::move(all.rows.key));
      add("V", std::move(all.rows.value));
    } else if (s_.input_rank == 3) {
      add("Q", merged_heads(request_.query));
      add("K", merged_heads(request_.key));
      add("V", merged_heads(request_.value));
    } else {
      add("Q", heads_first(request_.query));
      add("K", heads_first(request_.key));
      add("V", heads_first(request_.value));
    }
    if (request_.mask) add("attn_mask", *request_.mask);
    call_.outputs = {"Y"};
    if (s_.nonpad_kv_seqlen) {
      std::vector<std::int64_t> lengths;
      for (const auto& entry : timeline_.steps().back().entries) lengths.push_back(entry.length);
      add("nonpad_kv_seqlen", integers(ElementType::i64, {s_.batch}, lengths));
    } else {
      if (has_past) {
        kernels::LoadRequest past = past_rows();
        add("past_key", std::move(past.rows.key));
        add("past_value", std::move(past.rows.value));
      }
      call_.outputs.insert(call_.outputs.end(), {"present_key", "present_value"});
    }
    if (s_.qk_output != model::QkOutput::none) call_.outputs.emplace_back("qk_matmul_output");
    return std::move(call_);
  }

 private:
  void add(std::string name, Tensor tensor) {
    call_.inputs.push_back({std::move(name), std::move(tensor)});
  }

  void gqa_attributes() {
    auto& a = call_.attributes;
    a["num_heads"] = s_.query_heads;
    a["kv_num_heads"] = s_.kv_heads;
    if (s_.scale) a["scale"] = *s_.scale;
    if (!s_.causal) a["causal"] = std::int64_t{0};
    if (s_.cache.window_size) a["local_window_size"] = *s_.cache.window_size;
    if (s_.cache.layout == model::LayoutKind::block) a["sliding_window_cache"] = std::int64_t{1};
    if (s_.softcap != 0) a["softcap"] = s_.softcap;
    if (s_.smooth_softmax) a["smooth_softmax"] = std::int64_t{1};
    if (s_.rotary) a["do_rotary"] = std::int64_t{1};
    if (s_.rotary && s_.rotary->interleaved) a["rotary_interleaved"] = std::int64_t{1};
    if (s_.qk_output == model::QkOutput::biased) a["qk_output"] = std::int64_t{1};
    if (s_.qk_output == model::QkOutput::probabilities) a["qk_output"] = std::int64_t{2};
    if (!config_.quantisation.quantised()) return;
    const std::string type = config_.quantisation.per_channel ? "PER_CHANNEL" : "PER_TENSOR";
    a["k_quant_type"] = type;
    a["v_quant_type"] = type;
    a["kv_cache_bit_width"] = std::int64_t{config_.quantisation.kind == "int4" ? 4 : 8};
  }

  void attention_attributes() {
    auto& a = call_.attributes;
    a["is_causal"] = std::int64_t{s_.causal ? 1 : 0};
    if (s_.scale) a["scale"] = *s_.scale;
    if (s_.softcap != 0) a["softcap"] = s_.softcap;
    if (s_.input_rank == 3 && !s_.nonpad_kv_seqlen) {
      a["q_num_heads"] = s_.query_heads;
      a["kv_num_heads"] = s_.kv_heads;
    }
    if (s_.cache.window_size) a["left_window_size"] = *s_.cache.window_size - 1;
    if (s_.right_window_size) a["right_window_size"] = *s_.right_window_size;
    switch (s_.qk_output) {
      case model::QkOutput::none:
      case model::QkOutput::raw:
        break;
      case model::QkOutput::softcapped:
        a["qk_matmul_output_mode"] = std::int64_t{1};
        break;
      case model::QkOutput::biased:
        a["qk_matmul_output_mode"] = std::int64_t{2};
        break;
      case model::QkOutput::probabilities:
        a["qk_matmul_output_mode"] = std::int64_t{3};
        break;
    }
  }

  /// The cache before the step; a buffer without a live row where there is no past.
  kernels::LoadRequest past_rows() const {
    if (s_.steps.size() > 1) return load_request(s_, timeline_, fill_, 0);
    return buffer_of(std::vector<std::int64_t>(static_cast<std::size_t>(s_.batch), 0));
  }

  /// The buffer after the step, as the caller of attention with nonpad_kv_seqlen writes it.
  kernels::LoadRequest whole_buffer() const {
    std::vector<std::int64_t> lengths;
    for (const auto& entry : timeline_.steps().back().entries) lengths.push_back(entry.length);
    return buffer_of(lengths);
  }

  kernels::LoadRequest buffer_of(const std::vector<std::int64_t>& lengths) const {
    Scenario loaded = s_;
    loaded.steps = {model::Past{lengths}};
    const model::Timeline timeline(loaded);
    const model::Fill fill(loaded, timeline);
    return load_request(loaded, timeline, fill, 0);
  }

  const Scenario& s_;
  model::Timeline timeline_;
  model::Fill fill_;
  SessionConfig config_;
  StepRequest request_;
  OperatorCall call_;
};

}  // namespace

std::variant<OperatorCall, NoCall> operator_call_of(const Scenario& scenario) {
  if (scenario.fill.kind == model::FillKind::literal) {
    return NoCall{"the tensors are spelled out step by step"};
  }
  if (scenario.cache.layout != model::LayoutKind::full &&
      scenario.cache.layout != model::LayoutKind::block) {
    return NoCall{"the operator has no cache of that layout"};
  }
  auto last = last_step(scenario);
  if (auto* none = std::get_if<NoCall>(&last)) return std::move(*none);
  const Scenario& s = std::get<Scenario>(last);
  if (!model::validate(s).empty()) return NoCall{model::validate(s).front().message()};
  CallBuilder builder(s);
  return s.op == model::Operator::gqa ? builder.gqa() : builder.attention();
}

}  // namespace kvcheck::properties
