#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

#include "tests/model/call_cases.h"

namespace kvcheck::model {
namespace {

using Shape = std::vector<std::int64_t>;
using Change = std::function<void(AttentionCall&)>;
using enum AttentionRule;

constexpr auto kHuge = std::numeric_limits<std::int64_t>::max();

TensorInfo f32(Shape shape) { return {TensorType::f32, std::move(shape)}; }

/// 2 entries, 4 query heads on 2 KV heads of 8 and 6 lanes, 3 queries on 5 keys.
AttentionCall split(int opset) {
  AttentionCall call;
  call.opset = opset;
  call.q = f32({2, 4, 3, 8});
  call.k = f32({2, 2, 5, 8});
  call.v = f32({2, 2, 5, 6});
  return call;
}

AttentionCall joined(int opset) {
  AttentionCall call = split(opset);
  call.q_num_heads = 4;
  call.kv_num_heads = 2;
  call.q = f32({2, 3, 32});
  call.k = f32({2, 5, 16});
  call.v = f32({2, 5, 12});
  return call;
}

AttentionCall with_past(AttentionCall call, std::int64_t length = 4) {
  call.past_key = f32({2, 2, length, 8});
  call.past_value = f32({2, 2, length, 6});
  call.present_key = call.present_value = true;
  return call;
}

AttentionCall masked(int opset, Shape shape, TensorType type = TensorType::f32) {
  AttentionCall call = split(opset);
  call.attn_mask = TensorInfo{type, std::move(shape)};
  return call;
}

AttentionCall padded(int opset, std::vector<std::int64_t> lengths = {3, 5}) {
  AttentionCall call = split(opset);
  call.nonpad_kv_seqlen = TensorInfo{TensorType::i64, {2}};
  call.nonpad_kv_seqlen_values = std::move(lengths);
  return call;
}

class Cases {
 public:
  AttentionCase& valid(std::string name, AttentionCall call) {
    name = "attention_" + std::to_string(call.opset) + "_" + name;
    cases_.push_back({std::move(name), std::move(call), std::nullopt, OnnxRuntime::agrees, {}});
    return cases_.back();
  }

  AttentionCase& broken(AttentionRule rule, AttentionCall call, const Change& change) {
    change(call);
    const auto same = std::count_if(cases_.begin(), cases_.end(), [&](const AttentionCase& other) {
      return other.broken == rule;
    });
    std::string name = "attention_" + std::string(to_string(rule));
    if (same > 0) name += "_" + std::to_string(same + 1);
    cases_.push_back(
        {std::move(name), std::move(call), rule, OnnxRuntime::agrees, std::string(phrase(rule))});
    return cases_.back();
  }

  void accepted(AttentionRule rule, AttentionCall call, const Change& change) {
    broken(rule, std::move(call), change).answer = OnnxRuntime::accepts;
  }

  void unasked(AttentionRule rule, AttentionCall call, const Change& change) {
    broken(rule, std::move(call), change).answer = OnnxRuntime::unasked;
  }

  std::vector<AttentionCase> take() { return std::move(cases_); }

 private:
  std::vector<AttentionCase> cases_;
};

void add_valid(Cases& to) {
  for (const int opset : {23, 24, 25}) {
    to.valid("split", split(opset));
    to.valid("joined", joined(opset));
    to.valid("joined_past", with_past(joined(opset)));
    to.valid("past", with_past(split(opset)));
    to.valid("past_of_length_0", with_past(split(opset), 0));
    AttentionCall mode = split(opset);
    mode.qk_matmul_output_mode = 3;
    to.valid("probabilities", mode);
    AttentionCall precise = split(opset);
    precise.softmax_precision = 11;
    to.valid("softmax_in_f64", precise);
    AttentionCall presents = split(opset);
    presents.present_key = presents.present_value = true;
    to.valid("presents_without_past", presents);
    for (const Shape& shape : {Shape{3, 5},
                               {1, 3, 5},
                               {4, 3, 5},
                               {1, 1, 3, 5},
                               {2, 1, 3, 5},
                               {1, 4, 3, 5},
                               {2, 4, 3, 5}}) {
      for (const auto type : {TensorType::f32, TensorType::boolean}) {
        const std::string name = "mask_of_rank_" + std::to_string(shape.size());
        to.valid(name + "_" + std::to_string(shape[0]) +
                     (shape.size() > 1 ? std::to_string(shape[1]) : "") + "_" +
                     std::string(to_string(type)),
                 masked(opset, shape, type));
      }
    }
    // No kernel takes this type of mask, and the function body takes any rank.
    to.valid("mask_in_f64", masked(opset, {3, 5}, TensorType::f64));
    to.valid("mask_of_rank_1_in_f64", masked(opset, {5}, TensorType::f64));
    AttentionCall wide = split(opset);
    wide.q.type = wide.k.type = wide.v.type = TensorType::f64;
    wide.scale = -1;
    to.valid("f64_with_a_negative_scale", wide);
  }
  for (const int opset : {24, 25}) {
    to.valid("nonpad", padded(opset));
    AttentionCall both = padded(opset);
    both.attn_mask = f32({3, 5});
    to.valid("nonpad_and_mask", both);
  }
  for (const int opset : {23, 24}) {
    AttentionCall call = split(opset);
    call.q_num_heads = 4;
    call.kv_num_heads = 2;
    to.valid("head_counts_beside_rank_4", call);
    call.q_num_heads = call.kv_num_heads = 0;
    to.valid("head_counts_of_0", call);
    AttentionCall one = split(opset);
    one.present_key = true;
    to.valid("one_present", one);
  }
  AttentionCall presents = padded(24);
  presents.present_key = presents.present_value = true;
  to.valid("nonpad_and_presents", presents);
  AttentionCall unasked = with_past(split(25));
  unasked.present_key = unasked.present_value = false;
  to.valid("past_without_presents", unasked);
  AttentionCall window = split(25);
  window.left_window_size = 2;
  window.right_window_size = 0;
  to.valid("windows", window);
  to.valid("mask_of_rank_1", masked(25, {5}));
  to.valid("mask_for_every_query", masked(25, {1, 5}));
  to.valid("mask_short", masked(25, {3, 2}));
  AttentionCall shared = with_past(split(25));
  shared.k.shape[2] = shared.v.shape[2] = 0;
  to.valid("no_new_keys", shared);
}

void add_attributes(Cases& to) {
  to.broken(opset, split(22), [](AttentionCall&) {});
  to.broken(window_opset, split(24), [](AttentionCall& c) { c.left_window_size = 2; });
  to.broken(window_opset, split(23), [](AttentionCall& c) { c.right_window_size = -1; });
  to.broken(window_value, split(25), [](AttentionCall& c) { c.left_window_size = -2; });
  to.broken(window_value, split(25), [](AttentionCall& c) { c.right_window_size = -kHuge; });
  to.broken(output_mode, split(23), [](AttentionCall& c) { c.qk_matmul_output_mode = 4; });
  // -1 counts as absent there, and the function body of opset 25 asks for nothing.
  to.accepted(output_mode, split(23), [](AttentionCall& c) { c.qk_matmul_output_mode = -1; });
  to.accepted(output_mode, split(25), [](AttentionCall& c) { c.qk_matmul_output_mode = 4; });
  to.broken(AttentionRule::softmax_precision, split(25),
            [](AttentionCall& c) { c.softmax_precision = 7; });
  to.accepted(AttentionRule::softmax_precision, split(23),
              [](AttentionCall& c) { c.softmax_precision = 7; });
}

void add_presence_and_types(Cases& to) {
  to.broken(past_together, with_past(split(23)), [](AttentionCall& c) { c.past_value.reset(); });
  to.broken(past_together, with_past(split(24)), [](AttentionCall& c) { c.past_key.reset(); });
  to.broken(past_together, with_past(split(25)), [](AttentionCall& c) {
      c.past_key.reset();
    }).phrase = "past_key and past_value must be provided together";
  to.broken(presents_together, with_past(split(25)),
            [](AttentionCall& c) { c.present_value = false; });
  to.broken(nonpad_opset, padded(23), [](AttentionCall&) {});
  to.broken(nonpad_past, padded(24), [](AttentionCall& c) { c = with_past(std::move(c)); });
  to.broken(nonpad_past, padded(25), [](AttentionCall& c) { c = with_past(std::move(c)); }).phrase =
      phrase(nonpad_presents);
  to.broken(nonpad_presents, padded(25),
            [](AttentionCall& c) { c.present_key = c.present_value = true; });
  to.broken(float_type, split(23), [](AttentionCall& c) { c.q.type = c.k.type = TensorType::i32; });
  to.broken(float_type, split(24), [](AttentionCall& c) { c.v.type = TensorType::i32; });
  to.broken(query_key_type, split(23), [](AttentionCall& c) { c.k.type = TensorType::f16; });
  to.broken(past_type, with_past(split(23)),
            [](AttentionCall& c) { c.past_key->type = TensorType::f16; });
  to.broken(past_type, with_past(split(23)),
            [](AttentionCall& c) { c.past_value->type = TensorType::f16; });
  to.broken(nonpad_type, padded(24),
            [](AttentionCall& c) { c.nonpad_kv_seqlen->type = TensorType::i32; });
}

void add_shapes(Cases& to) {
  to.unasked(dimensions, split(23), [](AttentionCall& c) { c.k.shape[2] = -1; });
  to.broken(rank, split(23), [](AttentionCall& c) { c.q = c.k = c.v = f32({3, 8}); });
  to.broken(rank, split(24), [](AttentionCall& c) { c.q = c.k = c.v = f32({1, 2, 4, 3, 8}); });
  to.broken(ranks_equal, joined(23), [](AttentionCall& c) { c.k = f32({2, 2, 5, 8}); });
  to.broken(ranks_equal, split(24), [](AttentionCall& c) { c.v = f32({2, 5, 12}); });
  to.broken(past_rank, with_past(split(23)), [](AttentionCall& c) {
    c.past_key = f32({2, 4, 16});
  });
  to.broken(heads_given, joined(23), [](AttentionCall& c) { c.q_num_heads.reset(); });
  to.broken(heads_given, joined(24), [](AttentionCall& c) { c.kv_num_heads.reset(); });
  to.broken(heads_given, joined(23), [](AttentionCall& c) { c.q_num_heads = 0; }).phrase =
      "must be positive";
  to.broken(heads_absent, split(25), [](AttentionCall& c) { c.q_num_heads = 4; });
  to.broken(query_heads_dimension, split(23), [](AttentionCall& c) { c.q_num_heads = 3; });
  to.broken(kv_heads_dimension, split(23), [](AttentionCall& c) { c.kv_num_heads = 4; });
  to.broken(hidden_size, joined(23), [](AttentionCall& c) { c.q.shape[2] = 33; });
  to.broken(hidden_size, joined(23), [](AttentionCall& c) { c.v.shape[2] = 13; });
  to.broken(heads_positive, split(23), [](AttentionCall& c) { c.k.shape[1] = c.v.shape[1] = 0; });
  to.broken(heads_multiple, split(23), [](AttentionCall& c) { c.q.shape[1] = 3; });
  to.broken(heads_multiple, joined(24), [](AttentionCall& c) {
    c.q_num_heads = 3;
    c.q.shape[2] = 24;
  });
  to.broken(batch, split(23), [](AttentionCall& c) { c.k.shape[0] = 1; });
  to.broken(batch, split(23), [](AttentionCall& c) { c.v.shape[0] = 1; });
  to.accepted(batch, split(25), [](AttentionCall& c) { c.k.shape[0] = c.v.shape[0] = 1; });
  to.broken(value_heads, split(23), [](AttentionCall& c) { c.v.shape[1] = 4; });
  to.broken(AttentionRule::head_size, split(23), [](AttentionCall& c) { c.k.shape[3] = 6; });
  to.broken(AttentionRule::head_size, joined(23), [](AttentionCall& c) { c.k.shape[2] = 12; });
  to.broken(AttentionRule::head_size, joined(24), [](AttentionCall& c) { c.k.shape[2] = 17; });
  to.broken(key_value_length, split(23), [](AttentionCall& c) { c.v.shape[2] = 4; });
  to.broken(key_value_length, joined(24), [](AttentionCall& c) { c.v.shape[1] = 4; });
  const AttentionCall past = with_past(split(23));
  to.broken(past_batch, past, [](AttentionCall& c) { c.past_key->shape[0] = 1; });
  to.broken(past_batch, past, [](AttentionCall& c) { c.past_value->shape[0] = 1; });
  to.broken(past_shape, past,
            [](AttentionCall& c) { c.past_key->shape[1] = c.past_value->shape[1] = 4; });
  to.broken(past_shape, past, [](AttentionCall& c) { c.past_key->shape[3] = 6; });
  to.broken(past_shape, past, [](AttentionCall& c) { c.past_value->shape[3] = 8; });
  to.broken(past_length, past, [](AttentionCall& c) { c.past_value->shape[2] = 3; });
}

void add_masks(Cases& to) {
  const auto shape = [](Shape dimensions) {
    return [dimensions](AttentionCall& c) { c.attn_mask = f32(dimensions); };
  };
  to.broken(mask_rank, split(23), shape({1, 2, 4, 3, 5}));
  to.broken(mask_rank, split(24), shape({}));
  to.accepted(mask_rank, split(25), shape({1, 2, 4, 3, 5}));
  to.broken(mask_batch, split(23), shape({3, 4, 3, 5}));
  // Rank 3 has the heads first, not the batch.
  to.broken(mask_heads, split(23), shape({2, 3, 5}));
  to.broken(mask_heads, split(24), shape({2, 2, 3, 5}));
  to.broken(mask_queries, split(23), shape({2, 5}));
  to.broken(mask_keys, split(23), shape({3, 6}));
  to.broken(mask_keys, split(23), shape({3, 4}));
  to.broken(mask_keys, split(24), shape({3, 6}));
  // The function body cuts what is too long.
  to.accepted(mask_keys, split(25), shape({3, 6}));
  to.broken(mask_keys, with_past(split(23)), shape({3, 5}));
  to.unasked(mask_keys, with_past(split(23), kHuge), shape({3, 5}));
  to.broken(nonpad_rank, padded(24), [](AttentionCall& c) { c.nonpad_kv_seqlen->shape = {2, 1}; });
  to.accepted(nonpad_rank, padded(25), [](AttentionCall& c) {
    c.nonpad_kv_seqlen->shape = {2, 1};
  });
  to.broken(nonpad_count, padded(24, {3, 4, 5}),
            [](AttentionCall& c) { c.nonpad_kv_seqlen->shape = {3}; });
  to.broken(nonpad_range, padded(24, {3, 6}), [](AttentionCall&) {});
  to.broken(nonpad_range, padded(24, {-1, 5}), [](AttentionCall&) {});
  to.accepted(nonpad_range, padded(25, {-1, 6}), [](AttentionCall&) {});
  to.broken(mask_nonpad, padded(24), shape({3, 4}));
  to.accepted(mask_nonpad, padded(25), shape({3, 4}));
}

void add_cpu(Cases& to) {
  to.broken(cpu_type, split(23),
            [](AttentionCall& c) { c.q.type = c.k.type = c.v.type = TensorType::bf16; });
  to.broken(cpu_type, split(24), [](AttentionCall& c) { c.v.type = TensorType::f16; }).phrase =
      "bound to different types";
  to.broken(cpu_scale, split(23), [](AttentionCall& c) { c.scale = 0.0; });
  to.broken(cpu_scale, split(24), [](AttentionCall& c) { c.scale = -1.0; });
  to.broken(cpu_sizes, split(23), [](AttentionCall& c) { c.q.shape[2] = 0; });
  to.broken(cpu_sizes, split(23),
            [](AttentionCall& c) { c.q.shape[0] = c.k.shape[0] = c.v.shape[0] = 0; });
  to.broken(cpu_sizes, with_past(split(24)),
            [](AttentionCall& c) { c.k.shape[2] = c.v.shape[2] = 0; });
  to.broken(cpu_sizes, split(24), [](AttentionCall& c) { c.q.shape[3] = c.k.shape[3] = 0; });
  to.broken(cpu_sizes, split(25), [](AttentionCall& c) {
      c.k.shape[2] = c.v.shape[2] = 0;
    }).phrase = "cannot be reshaped";
  to.broken(cpu_past_presents, with_past(split(23)),
            [](AttentionCall& c) { c.present_key = c.present_value = false; });
  to.broken(cpu_past_presents, with_past(split(24)),
            [](AttentionCall& c) { c.present_value = false; });
  const auto shape = [](Shape dimensions) {
    return [dimensions](AttentionCall& c) { c.attn_mask = f32(dimensions); };
  };
  to.broken(cpu_mask_rank, split(23), shape({5}));
  to.broken(cpu_mask_queries, split(23), shape({1, 5}));
  to.broken(cpu_mask_queries, split(24), shape({1, 1, 1, 5}));
  to.broken(cpu_mask_keys, split(23), shape({3, 1}));
  to.broken(cpu_mask_keys, split(24), shape({3, 4}));
}

}  // namespace

std::vector<AttentionCase> attention_cases() {
  Cases cases;
  add_valid(cases);
  add_attributes(cases);
  add_presence_and_types(cases);
  add_shapes(cases);
  add_masks(cases);
  add_cpu(cases);
  return cases.take();
}

Strictness strictness_of(const AttentionCase& tested) {
  const bool cpu = !tested.broken || *tested.broken >= cpu_type;
  return cpu ? Strictness::onnxruntime_cpu : Strictness::operator_contract;
}

}  // namespace kvcheck::model
