// Calls of GroupQueryAttention to start from, and the list that their changed copies go to.
#pragma once

#include <algorithm>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tests/model/call_cases.h"

namespace kvcheck::model::gqa_builder {

using Shape = std::vector<std::int64_t>;
using Change = std::function<void(GqaCall&)>;

inline constexpr std::int64_t kHeads = 2;
inline constexpr std::int64_t kHeadSize = 16;
inline constexpr auto kHuge = std::numeric_limits<std::int64_t>::max();
inline constexpr auto kInt32Max = std::numeric_limits<std::int32_t>::max();

inline TensorInfo f32(Shape shape) { return {TensorType::f32, std::move(shape)}; }
inline TensorInfo i32(Shape shape) { return {TensorType::i32, std::move(shape)}; }
inline TensorInfo i64(Shape shape) { return {TensorType::i64, std::move(shape)}; }

/// A step of `step` tokens behind `past` in buffers of `rows` rows; one KV head, two query heads.
inline GqaCall step(std::int64_t batch, std::int64_t step, std::int64_t past, std::int64_t rows) {
  GqaCall call;
  call.num_heads = kHeads;
  call.query = f32({batch, step, kHeads * kHeadSize});
  call.key = call.value = f32({batch, step, kHeadSize});
  call.past_key = call.past_value = f32({batch, 1, rows, kHeadSize});
  call.seqlens_k = i32({batch});
  call.total_sequence_length = i32({1});
  call.total_sequence_length_value = static_cast<std::int32_t>(past + step);
  call.seqlens_k_values.assign(static_cast<std::size_t>(batch),
                               static_cast<std::int32_t>(past + step - 1));
  return call;
}

inline GqaCall decode() { return step(1, 1, 3, 3); }
inline GqaCall fixed_decode() { return step(1, 1, 3, 12); }
inline GqaCall batch_decode() { return step(4, 1, 3, 3); }
inline GqaCall chunk() { return step(1, 3, 4, 4); }
inline GqaCall fixed_chunk() { return step(1, 3, 4, 12); }

inline GqaCall prompt() {
  GqaCall call = step(1, 4, 0, 0);
  call.past_key.reset();
  call.past_value.reset();
  return call;
}

inline GqaCall shared_kv() {
  GqaCall call = step(1, 2, 3, 9);
  call.key = call.value = f32({1, 0, kHeadSize});
  return call;
}

inline GqaCall packed() {
  GqaCall call = decode();
  call.query.shape[2] = (kHeads + 2) * kHeadSize;
  call.key.reset();
  call.value.reset();
  return call;
}

inline GqaCall windowed(std::int64_t tokens = 1, std::int64_t past = 30) {
  GqaCall call = step(1, tokens, past, 6);
  call.sliding_window_cache = 1;
  call.local_window_size = 4;
  return call;
}

inline GqaCall quantise(GqaCall call, std::int64_t bits) {
  call.k_quant_type = call.v_quant_type = "PER_TENSOR";
  call.kv_cache_bit_width = bits;
  call.k_scale = call.v_scale = f32({1});
  for (auto* cache : {&call.past_key, &call.past_value}) {
    (*cache)->type = bits == 8 ? TensorType::i8 : TensorType::u8;
    if (bits == 4) (*cache)->shape[3] /= 2;
  }
  return call;
}

inline GqaCall int8() { return quantise(decode(), 8); }
inline GqaCall int4() { return quantise(decode(), 4); }

inline GqaCall rotate(GqaCall call, std::int64_t rows = 8) {
  call.do_rotary = 1;
  call.cos_cache = call.sin_cache = f32({rows, 8});
  return call;
}

inline GqaCall rotary() { return rotate(decode()); }

inline GqaCall place(GqaCall call, Shape shape, std::vector<std::int64_t> positions) {
  call.position_ids = i64(std::move(shape));
  call.position_ids_values = std::move(positions);
  return call;
}

inline GqaCall positions() { return place(rotary(), {1, 1}, {3}); }
inline GqaCall prompt_positions() { return place(rotate(prompt()), {1, 4}, {0, 1, 2, 3}); }

inline GqaCall bias(GqaCall call) {
  call.attention_bias =
      f32({1, 1, call.query.shape[1], static_cast<std::int64_t>(call.total_sequence_length_value)});
  return call;
}

inline GqaCall biased() { return bias(decode()); }

/// Padded chunks of `tokens` rows with `valid[b]` tokens in use and T = lengths[b].
inline GqaCall pad(GqaCall call, std::vector<std::int32_t> valid,
                   std::vector<std::int32_t> lengths) {
  call.query_seqlens = i32({static_cast<std::int64_t>(valid.size())});
  call.query_seqlens_values = std::move(valid);
  call.seqlens_k_values = std::move(lengths);
  for (std::int32_t& length : call.seqlens_k_values) --length;
  return call;
}

inline GqaCall padded_chunk() { return pad(fixed_chunk(), {2}, {6}); }

class Cases {
 public:
  GqaCase& valid(std::string name, GqaCall call, const Change& change = {}) {
    if (change) change(call);
    cases_.push_back({std::move(name), std::move(call), std::nullopt, OnnxRuntime::agrees, {}});
    return cases_.back();
  }

  /// `call` after the change breaks `rule` and no other.
  GqaCase& broken(GqaRule rule, GqaCall call, const Change& change) {
    change(call);
    const auto same = std::count_if(cases_.begin(), cases_.end(),
                                    [&](const GqaCase& other) { return other.broken == rule; });
    std::string name(to_string(rule));
    if (same > 0) name += "_" + std::to_string(same + 1);
    cases_.push_back(
        {std::move(name), std::move(call), rule, OnnxRuntime::agrees, std::string(phrase(rule))});
    return cases_.back();
  }

  void ends(GqaRule rule, GqaCall call, const Change& change) {
    broken(rule, std::move(call), change).answer = OnnxRuntime::ends;
  }

  void unasked(GqaRule rule, GqaCall call, const Change& change) {
    broken(rule, std::move(call), change).answer = OnnxRuntime::unasked;
  }

  std::vector<GqaCase> take() { return std::move(cases_); }

 private:
  std::vector<GqaCase> cases_;
};

/// The cases of the rules about shapes, and of those about lengths.
void add_shapes(Cases& to);
void add_lengths(Cases& to);

}  // namespace kvcheck::model::gqa_builder
