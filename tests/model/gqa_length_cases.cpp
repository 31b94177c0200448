#include "tests/model/gqa_call_builder.h"

namespace kvcheck::model::gqa_builder {

using enum GqaRule;

namespace {

void add_ranks(Cases& to) {
  to.unasked(dimensions, decode(), [](GqaCall& c) { c.query.shape[1] = -1; });
  to.unasked(dimensions, decode(), [](GqaCall& c) { c.past_key->shape[2] = -kHuge; });
  to.broken(query_rank, decode(), [](GqaCall& c) { c.query = f32({1, 32}); });
  to.broken(key_value_rank, decode(), [](GqaCall& c) { c.key = f32({1, 16}); });
  to.broken(key_value_rank, decode(), [](GqaCall& c) { c.value = f32({1, 1, 1, 16}); });
  to.broken(past_rank, decode(), [](GqaCall& c) { c.past_key = c.past_value = f32({1, 3, 16}); });
  to.ends(rotary_rank, rotary(), [](GqaCall& c) { c.cos_cache = c.sin_cache = f32({8}); });
  to.ends(position_ids_rank, positions(), [](GqaCall& c) { c.position_ids->shape = {1}; });
  to.broken(bias_rank, biased(), [](GqaCall& c) { c.attention_bias = f32({1, 1, 4}); });
  to.broken(sink_rank, decode(), [](GqaCall& c) { c.head_sink = f32({1, kHeads}); });
  to.broken(seqlens_rank, decode(), [](GqaCall& c) { c.seqlens_k.shape = {}; });
}

void add_query_key_value(Cases& to) {
  to.ends(batch_positive, decode(), [](GqaCall& c) { c = step(0, 1, 3, 3); });
  to.broken(hidden_size, decode(), [](GqaCall& c) { c.query.shape[2] = 33; });
  to.broken(hidden_size, packed(), [](GqaCall& c) { c.query.shape[2] = 65; });
  to.broken(head_size_multiple, decode(), [](GqaCall& c) {
    c.query.shape[2] = 24;
    c.key->shape[2] = c.value->shape[2] = 12;
    c.past_key->shape[3] = c.past_value->shape[3] = 12;
  });
  to.broken(head_size_multiple, packed(), [](GqaCall& c) {
    c.query.shape[2] = 48;
    c.past_key->shape[3] = c.past_value->shape[3] = 12;
  });
  to.ends(head_size_multiple, decode(), [](GqaCall& c) {
    c.query.shape[2] = c.key->shape[2] = c.value->shape[2] = 0;
    c.past_key->shape[3] = c.past_value->shape[3] = 0;
  });
  to.broken(key_batch, decode(), [](GqaCall& c) { c.key->shape[0] = c.value->shape[0] = 2; });
  to.broken(key_batch, decode(), [](GqaCall& c) { c.value->shape[0] = 2; });
  to.broken(value_length, decode(), [](GqaCall& c) { c.value->shape[1] = 2; });
  to.broken(key_hidden, decode(), [](GqaCall& c) { c.key->shape[2] = c.value->shape[2] = 24; });
  to.broken(key_hidden, decode(), [](GqaCall& c) { c.key->shape[2] = c.value->shape[2] = 8; });
  to.broken(value_hidden, decode(), [](GqaCall& c) { c.value->shape[2] = 24; });
  const auto keys = [](std::int64_t length) {
    return [length](GqaCall& c) { c.key->shape[1] = c.value->shape[1] = length; };
  };
  to.broken(length_without_past, prompt(), keys(3));
  to.broken(length_without_past, prompt(), keys(0));
  to.broken(length_with_past, chunk(), keys(2));
  to.broken(length_with_past, decode(), keys(2));
  to.broken(windowed_shared_kv, windowed(), keys(0));
  to.broken(query_seqlens_new_keys, padded_chunk(), keys(0));
}

void add_past(Cases& to) {
  to.broken(past_batch, decode(),
            [](GqaCall& c) { c.past_key->shape[0] = c.past_value->shape[0] = 2; });
  to.broken(past_batch, decode(), [](GqaCall& c) { c.past_value->shape[0] = 2; });
  to.broken(past_heads, decode(),
            [](GqaCall& c) { c.past_key->shape[1] = c.past_value->shape[1] = 2; });
  to.broken(past_heads, decode(), [](GqaCall& c) { c.past_value->shape[1] = 2; });
  to.broken(past_length, decode(), [](GqaCall& c) { c.past_value->shape[2] = 4; });
  to.broken(past_head_size, decode(), [](GqaCall& c) { c.past_key->shape[3] = 8; });
  to.broken(past_head_size, int4(), [](GqaCall& c) { c.past_value->shape[3] = 16; });
  to.broken(windowed_capacity, windowed(),
            [](GqaCall& c) { c.past_key->shape[2] = c.past_value->shape[2] = 3; });
  to.unasked(windowed_capacity, windowed(), [](GqaCall& c) { c.local_window_size = kHuge; });
  to.broken(windowed_head_size, quantise(windowed(), 4), [](GqaCall&) {});
  to.broken(windowed_head_size, quantise(windowed(), 8), [](GqaCall& c) {
    c.query.shape[2] = 16;
    c.key->shape[2] = c.value->shape[2] = c.past_key->shape[3] = c.past_value->shape[3] = 8;
  });
}

void add_other_shapes(Cases& to) {
  to.broken(scale_count, int8(), [](GqaCall& c) { c.k_scale->shape = {2}; });
  to.broken(scale_count, int8(), [](GqaCall& c) {
    c.k_quant_type = c.v_quant_type = "PER_CHANNEL";
    c.k_scale->shape = {16};
    c.v_scale->shape = {15};
  });
  to.broken(seqlens_count, decode(), [](GqaCall& c) {
    c.seqlens_k.shape = {2};
    c.seqlens_k_values = {3, 3};
  });
  to.broken(seqlens_count, decode(), [](GqaCall& c) {
    c.seqlens_k.shape = {0};
    c.seqlens_k_values = {};
  });
  to.unasked(seqlens_count, decode(), [](GqaCall& c) { c.seqlens_k.shape = {kHuge, kHuge}; });
  to.broken(seqlens_shape, batch_decode(), [](GqaCall& c) { c.seqlens_k.shape = {2, 2}; });
  to.broken(query_seqlens_shape, padded_chunk(), [](GqaCall& c) {
    c.query_seqlens->shape = {1, 1};
  });
  to.broken(query_seqlens_shape, padded_chunk(), [](GqaCall& c) {
    c.query_seqlens->shape = {2};
    c.query_seqlens_values = {2, 2};
  });
  to.broken(total_one_element, decode(), [](GqaCall& c) { c.total_sequence_length.shape = {2}; });
  to.broken(total_one_element, decode(), [](GqaCall& c) {
    c.total_sequence_length.shape = {1, 1};
  });
  to.broken(rotary_head_size, rotary(), [](GqaCall& c) {
    c.query.shape[2] = 48;
    c.key->shape[2] = c.value->shape[2] = c.past_key->shape[3] = c.past_value->shape[3] = 24;
  });
  to.broken(rotary_shapes_equal, rotary(), [](GqaCall& c) { c.sin_cache->shape = {9, 8}; });
  to.broken(rotary_shapes_equal, rotary(), [](GqaCall& c) { c.sin_cache->shape = {8}; });
  to.broken(rotary_width, rotary(), [](GqaCall& c) {
    c.cos_cache->shape = c.sin_cache->shape = {8, 16};
  });
  to.broken(rotary_width, rotary(), [](GqaCall& c) {
    c.cos_cache->shape = c.sin_cache->shape = {8, 4};
  });
  to.broken(position_ids_batch, positions(), [](GqaCall& c) {
    c.position_ids->shape = {2, 1};
    c.position_ids_values = {3, 3};
  });
  to.broken(position_ids_length, prompt_positions(), [](GqaCall& c) {
    c.position_ids->shape = {1, 3};
    c.position_ids_values = {0, 1, 2};
  });
  to.broken(bias_batch, biased(), [](GqaCall& c) { c.attention_bias->shape[0] = 2; });
  to.broken(bias_heads, biased(), [](GqaCall& c) { c.attention_bias->shape[1] = 3; });
  to.broken(bias_step, biased(), [](GqaCall& c) { c.attention_bias->shape[2] = 2; });
  to.broken(sink_count, decode(), [](GqaCall& c) { c.head_sink = f32({3}); });
}

void add_totals(Cases& to) {
  const auto total = [](std::int32_t value) {
    return [value](GqaCall& c) { c.total_sequence_length_value = value; };
  };
  to.broken(total_positive, fixed_decode(), total(0));
  to.broken(total_positive, fixed_decode(), total(-5));
  to.broken(step_empty, fixed_decode(),
            [](GqaCall& c) { c.query.shape[1] = c.key->shape[1] = c.value->shape[1] = 0; });
  to.broken(chunk_batch, step(2, 3, 4, 12), [](GqaCall&) {});
  to.broken(total_covers_step, step(1, 4, 0, 12), total(3));
  to.broken(total_by_cache, decode(), total(5));
  to.broken(total_by_cache, chunk(), total(5));
  to.broken(total_by_cache, prompt(), total(6));
  // As a first prompt into a buffer that it does not fit.
  to.broken(total_by_cache, step(1, 4, 0, 3), [](GqaCall&) {});
  // Shared KV beyond the past, and decode without one.
  to.broken(total_by_cache, shared_kv(), total(10));
  to.broken(total_by_cache, decode(), [](GqaCall& c) {
    c.past_key.reset();
    c.past_value.reset();
  });
  to.unasked(total_by_cache, decode(), [](GqaCall& c) {
    c.query.shape[1] = c.key->shape[1] = c.value->shape[1] = 1;
    c.total_sequence_length_value = kInt32Max;
  });
  to.broken(rotary_rows, rotate(decode(), 3), [](GqaCall&) {});
  to.broken(rotary_rows, rotate(windowed(), 30), [](GqaCall&) {});
  to.broken(bias_total, biased(), [](GqaCall& c) { c.attention_bias->shape[3] = 3; });
  to.broken(bias_total, biased(), [](GqaCall& c) { c.attention_bias->shape[3] = 5; });
}

void add_entries(Cases& to) {
  const auto last = [](std::int32_t value) {
    return [value](GqaCall& c) { c.seqlens_k_values.back() = value; };
  };
  to.broken(seqlens_range, decode(), last(-1));
  to.broken(seqlens_range, decode(), last(-kInt32Max - 1));
  to.broken(seqlens_range, decode(), last(4));
  to.broken(seqlens_range, decode(), last(kInt32Max));
  to.broken(seqlens_range, fixed_decode(), last(12));
  to.broken(seqlens_range, batch_decode(), last(4));
  to.broken(seqlens_range, prompt(), last(4));
  to.broken(seqlens_range, windowed(), last(-1));
  to.broken(seqlens_step, chunk(), last(1));
  to.broken(seqlens_step, shared_kv(), last(0));
  to.broken(seqlens_step, windowed(4, 0), last(1));
  to.broken(rotary_last_position, rotate(fixed_decode()), last(8));
  to.broken(rotary_last_position, place(rotate(fixed_decode()), {1, 1}, {0}), last(8));
  to.broken(bias_entries, bias(windowed()), last(31));
  to.unasked(bias_entries, bias(fixed_decode()), last(6));
  const auto first = [](std::int64_t value) {
    return [value](GqaCall& c) { c.position_ids_values.front() = value; };
  };
  to.broken(position_ids_prompt, prompt_positions(), first(-1));
  to.broken(position_ids_prompt, prompt_positions(), first(5));
  to.broken(position_ids_prompt, prompt_positions(), first(kHuge));
  to.broken(position_ids_value, positions(), first(-1));
  to.broken(position_ids_value, positions(), first(8));
  to.broken(position_ids_value, place(rotate(batch_decode()), {4, 2}, {0, 1, 2, 8, 0, 0, 0, 0}),
            [](GqaCall&) {});
  to.broken(position_ids_value, place(rotate(pad(fixed_chunk(), {2}, {7})), {1, 3}, {0, 100, 0}),
            [](GqaCall&) {});
}

void add_query_seqlens(Cases& to) {
  const auto change = [](std::int32_t valid, std::int32_t length) {
    return [=](GqaCall& c) { c = pad(std::move(c), {valid}, {length}); };
  };
  to.broken(query_seqlens_range, fixed_chunk(), change(-1, 7));
  to.broken(query_seqlens_range, fixed_chunk(), change(4, 7));
  to.broken(query_seqlens_range, fixed_chunk(), change(3, 2));
  to.broken(query_seqlens_seqlens, fixed_chunk(), change(0, 0));
  to.broken(query_seqlens_total, fixed_chunk(), change(3, 8));
  to.broken(query_seqlens_total, windowed(3, 4), change(3, 8));
  to.broken(query_seqlens_past_rows, step(1, 3, 6, 4), change(1, 9));
  to.broken(query_seqlens_room, step(1, 3, 6, 10), change(1, 9));
}

}  // namespace

void add_shapes(Cases& to) {
  add_ranks(to);
  add_query_key_value(to);
  add_past(to);
  add_other_shapes(to);
}

void add_lengths(Cases& to) {
  add_totals(to);
  add_entries(to);
  add_query_seqlens(to);
}

}  // namespace kvcheck::model::gqa_builder
