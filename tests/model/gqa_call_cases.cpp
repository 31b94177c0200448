#include "tests/model/gqa_call_builder.h"

namespace kvcheck::model {
namespace {

using namespace gqa_builder;
using enum GqaRule;

void add_valid(Cases& to) {
  to.valid("first_prompt", prompt());
  to.valid("first_prompt_into_a_buffer", step(2, 4, 0, 12));
  to.valid("first_prompt_padded", step(2, 4, 0, 12), [](GqaCall& c) { c.seqlens_k_values[0] = 1; });
  to.valid("prompt_without_presents", prompt(),
           [](GqaCall& c) { c.present_key = c.present_value = false; });
  to.valid("chunk", chunk());
  to.valid("chunk_in_a_fixed_buffer", fixed_chunk());
  to.valid("decode", decode());
  to.valid("decode_in_a_fixed_buffer", fixed_decode());
  to.valid("decode_ragged", batch_decode(), [](GqaCall& c) { c.seqlens_k_values = {3, 0, 2, 1}; });
  to.valid("seqlens_in_a_column", batch_decode(), [](GqaCall& c) {
    c.seqlens_k.shape = {1, 4, 1};
  });
  to.valid("total_as_a_scalar", decode(), [](GqaCall& c) { c.total_sequence_length.shape = {}; });
  to.valid("total_below_the_longest_entry", fixed_decode(),
           [](GqaCall& c) { c.seqlens_k_values = {11}; });
  to.valid("shared_kv", shared_kv());
  to.valid("shared_kv_whole", step(1, 3, 0, 3), [](GqaCall& c) {
    c.key = c.value = f32({1, 0, kHeadSize});
  });
  to.valid("packed", packed());
  to.valid("f16", decode(), [](GqaCall& c) {
    c.query.type = c.key->type = c.value->type = TensorType::f16;
    c.past_key->type = c.past_value->type = TensorType::f16;
  });
  to.valid("f16_cache_of_f32_queries", decode(),
           [](GqaCall& c) { c.past_key->type = c.past_value->type = TensorType::f16; });
  to.valid("rotary", rotary());
  to.valid("rotary_caches_unused", rotary(), [](GqaCall& c) { c.do_rotary = 0; });
  to.valid("rotary_caches_of_rank_3", rotary(), [](GqaCall& c) {
    c.cos_cache->shape = c.sin_cache->shape = {8, 8, 1};
  });
  to.valid("positions", positions());
  to.valid("positions_of_a_prompt_but_the_first_unread", prompt_positions(), [](GqaCall& c) {
    c.position_ids_values = {4, 100, -3, 0};
  });
  to.valid("positions_unread_without_rotary", positions(), [](GqaCall& c) {
    c.do_rotary = 0;
    c.position_ids_values = {-100};
  });
  to.valid("positions_read_flat",
           place(rotate(batch_decode()), {4, 2}, {0, 1, 2, 3, 99, 99, 99, 99}));
  to.valid("bias", biased());
  to.valid("bias_by_head", biased(), [](GqaCall& c) { c.attention_bias->shape[1] = kHeads; });
  to.valid("sink", decode(), [](GqaCall& c) { c.head_sink = f32({kHeads}); });
  to.valid("bidirectional", decode(), [](GqaCall& c) { c.causal = 0; });
  to.valid("window", decode(), [](GqaCall& c) { c.local_window_size = 2; });
  to.valid("window_of_nothing", decode(), [](GqaCall& c) { c.local_window_size = 0; });
  to.valid("window_below_minus_one", decode(), [](GqaCall& c) { c.local_window_size = -7; });
  to.valid("sliding_window_cache_of_2_is_off", decode(),
           [](GqaCall& c) { c.sliding_window_cache = 2; });
  to.valid("qk_output", decode(), [](GqaCall& c) {
    c.qk_output = 2;
    c.output_qk = true;
  });
  to.valid("int8", int8());
  to.valid("int4", int4());
  to.valid("int8_from_nothing", quantise(step(1, 3, 0, 0), 8));
  to.valid("int8_per_channel", int8(), [](GqaCall& c) {
    c.k_quant_type = c.v_quant_type = "per_channel";
    c.k_scale = f32({4, 4});
    c.v_scale = f32({1, 1, 1, 16});
  });
  to.valid("windowed", windowed());
  to.valid("windowed_prompt_beyond_the_capacity", windowed(8, 0));
  to.valid("windowed_chunk", windowed(3, 20));
  to.valid("windowed_bias", bias(windowed()));
  to.valid("windowed_int8", quantise(windowed(), 8));
  to.valid("windowed_at_the_last_length", windowed(), [](GqaCall& c) {
    c.total_sequence_length_value = kInt32Max;
    c.seqlens_k_values = {kInt32Max};
  });
  to.valid("padded_chunk", padded_chunk());
  to.valid("padded_chunks_of_a_batch", pad(step(3, 3, 4, 12), {2, 3, 0}, {6, 7, 4}));
  to.valid("padded_chunk_windowed", pad(windowed(8, 0), {2}, {6}));
  to.valid("padded_positions_unread",
           place(rotate(pad(step(1, 3, 4, 12), {1}, {7})), {1, 3}, {0, 100, -5}));
}

void add_attributes(Cases& to) {
  to.broken(head_counts, decode(), [](GqaCall& c) { c.num_heads = 0; });
  to.broken(head_counts, decode(), [](GqaCall& c) { c.kv_num_heads = -1; });
  to.unasked(head_counts, decode(), [](GqaCall& c) { c.num_heads = kHuge; });
  to.broken(heads_multiple, decode(), [](GqaCall& c) {
    c.num_heads = 3;
    c.kv_num_heads = 2;
  });
  to.broken(causal_value, decode(), [](GqaCall& c) { c.causal = 2; });
  to.broken(causal_window, decode(), [](GqaCall& c) {
    c.causal = 0;
    c.local_window_size = 2;
  });
  to.broken(quant_type_name, int8(),
            [](GqaCall& c) { c.k_quant_type = c.v_quant_type = "PER_ROW"; });
  to.broken(quant_types_equal, int8(), [](GqaCall& c) {
    c.v_quant_type = "PER_CHANNEL";
    c.v_scale = f32({16});
  });
  to.broken(bit_width, int8(), [](GqaCall& c) { c.kv_cache_bit_width = 0; });
  to.broken(bit_width, int8(), [](GqaCall& c) { c.kv_cache_bit_width = 16; });
  to.broken(bit_width_unused, decode(), [](GqaCall& c) { c.kv_cache_bit_width = 8; });
  to.broken(qk_output_value, decode(), [](GqaCall& c) {
    c.qk_output = 3;
    c.output_qk = true;
  });
  to.broken(qk_output_value, decode(), [](GqaCall& c) {
    c.qk_output = -1;
    c.output_qk = true;
  });
  to.broken(window_positive, windowed(), [](GqaCall& c) { c.local_window_size = 0; });
  to.broken(windowed_qk_output, windowed(), [](GqaCall& c) {
    c.qk_output = 1;
    c.output_qk = true;
  });
  to.broken(query_seqlens_causal, padded_chunk(), [](GqaCall& c) { c.causal = 0; });
  to.broken(qk_output_missing, decode(), [](GqaCall& c) { c.qk_output = 1; });
  to.broken(qk_output_unasked, decode(), [](GqaCall& c) { c.output_qk = true; });
  to.broken(presents_together, decode(), [](GqaCall& c) { c.present_key = false; });
  const Change no_presents = [](GqaCall& c) { c.present_key = c.present_value = false; };
  to.broken(quantised_presents, int8(), no_presents);
  to.broken(windowed_presents, windowed(), no_presents);
  to.broken(query_seqlens_presents, padded_chunk(), no_presents);
}

void add_presence_and_types(Cases& to) {
  const Change no_past = [](GqaCall& c) {
    c.past_key.reset();
    c.past_value.reset();
  };
  to.broken(key_value_together, decode(), [](GqaCall& c) { c.value.reset(); });
  to.broken(key_value_together, decode(), [](GqaCall& c) { c.key.reset(); });
  to.broken(past_together, decode(), [](GqaCall& c) { c.past_key.reset(); });
  to.broken(past_together, decode(), [](GqaCall& c) { c.past_value.reset(); }).phrase =
      "Input 4 expected to have type";
  to.broken(cos_sin_together, rotary(), [](GqaCall& c) { c.sin_cache.reset(); });
  to.broken(rotary_caches, decode(), [](GqaCall& c) { c.do_rotary = 1; });
  to.broken(qk_norm, decode(),
            [](GqaCall& c) { c.q_norm_weight = c.k_norm_weight = f32({kHeadSize}); });
  to.broken(windowed_past, windowed(4, 0), no_past);
  to.broken(quantised_past, quantise(step(1, 4, 0, 0), 8), no_past);
  to.broken(query_seqlens_past, pad(step(1, 4, 0, 4), {4}, {4}), no_past);
  to.broken(scales_missing, int8(), [](GqaCall& c) { c.k_scale.reset(); });
  to.broken(scales_missing, int8(), [](GqaCall& c) { c.v_scale.reset(); });
  const auto retype = [](TensorType type) {
    return [type](GqaCall& c) { c.query.type = c.key->type = c.value->type = type; };
  };
  // The cache stays f32: bf16 caches are refused as well.
  to.broken(query_type, decode(), retype(TensorType::bf16));
  to.broken(query_type, decode(), retype(TensorType::f64)).phrase = "of input parameter (query)";
  to.broken(input_type, decode(), [](GqaCall& c) { c.key->type = TensorType::f16; });
  to.broken(input_type, decode(), [](GqaCall& c) { c.value->type = TensorType::f16; });
  to.broken(input_type, rotary(), [](GqaCall& c) { c.cos_cache->type = TensorType::f16; });
  to.broken(input_type, rotary(), [](GqaCall& c) { c.sin_cache->type = TensorType::f16; });
  to.broken(input_type, biased(), [](GqaCall& c) { c.attention_bias->type = TensorType::f16; });
  to.broken(past_types_equal, decode(), [](GqaCall& c) { c.past_value->type = TensorType::f16; });
  const auto retype_cache = [](TensorType type) {
    return [type](GqaCall& c) { c.past_key->type = c.past_value->type = type; };
  };
  to.broken(cache_type, int8(), retype_cache(TensorType::u8));
  to.broken(cache_type, int4(), retype_cache(TensorType::i8));
  to.broken(cache_type, decode(), retype_cache(TensorType::i8));
  to.broken(cache_type, int8(), retype_cache(TensorType::fp8)).phrase =
      "Could not find an implementation";
  to.broken(scale_type, int8(), [](GqaCall& c) { c.k_scale->type = TensorType::f16; });
  to.broken(scale_type, int8(), [](GqaCall& c) { c.v_scale->type = TensorType::f16; });
  to.broken(index_type, decode(), [](GqaCall& c) { c.seqlens_k.type = TensorType::i64; });
  to.broken(index_type, decode(),
            [](GqaCall& c) { c.total_sequence_length.type = TensorType::i64; });
  to.broken(index_type, padded_chunk(),
            [](GqaCall& c) { c.query_seqlens->type = TensorType::i64; });
  to.broken(index_type, positions(), [](GqaCall& c) { c.position_ids->type = TensorType::i32; });
}

}  // namespace

std::vector<GqaCase> gqa_cases() {
  Cases cases;
  add_valid(cases);
  add_attributes(cases);
  add_presence_and_types(cases);
  gqa_builder::add_shapes(cases);
  gqa_builder::add_lengths(cases);
  return cases.take();
}

}  // namespace kvcheck::model
