// Cases of the faults in what a query sees and how it sums.
#include "tests/kernels/fault_cases.h"

namespace kvcheck::kernels {
namespace {

SessionConfig boolean_mask(std::int64_t batch_and_heads) {
  return with(attention(false), [&](SessionConfig& c) {
    c.mask = "boolean";
    c.batch = c.query_heads = c.kv_heads = batch_and_heads;
  });
}

Numbers masked(Sequence& sequence, const Counts& tokens, const Counts& queries,
               std::vector<std::int64_t> shape, const Numbers& mask) {
  StepRequest request = sequence.request(tokens, queries);
  request.mask = sequence.mask(std::move(shape), mask);
  return sequence.run(request);
}

Numbers past_and_step(Sequence& sequence, std::int64_t past, std::int64_t tokens,
                      std::int64_t queries) {
  sequence.load({past});
  return sequence.append({tokens}, {queries});
}

/// One step of tokens with given values, queries and keys 0.
Numbers values_of(Sequence& sequence, ElementType type, const Numbers& values) {
  const auto tokens = static_cast<std::int64_t>(values.size());
  StepRequest request = sequence.request({tokens}, {tokens});
  request.key = Tensor::zeros(type, request.key.shape);
  request.value = tensor_of(type, request.value.shape, values);
  return sequence.run(request);
}

std::vector<FaultCase> mask_origin_cases() {
  return {
      // Past 2: the query at position 2 sees {0,1,2}; without the limit {0..3}.
      {"causal_skipped_single_query",
       attention(),
       [](Sequence& s) { return past_and_step(s, 2, 2, 1); },
       {1},
       {1.5}},
      {"causal_top_left_with_past",
       attention(),
       [](Sequence& s) { return past_and_step(s, 2, 1, 1); },
       {1},
       {0}},
      // T = 5, two queries: offset 2 is right, offset 3 the fault's.
      {"causal_bottom_right_by_total",
       attention(),
       [](Sequence& s) { return past_and_step(s, 2, 3, 2); },
       {1, 1.5},
       {1.5, 2}},
      {"causal_always",
       with(full_cache(), [](SessionConfig& c) { c.causal = false; }),
       [](Sequence& s) { return s.append({2}); },
       {0.5, 0.5},
       {0, 0.5}},
      {"causal_bottom_right_without_past",
       attention(),
       [](Sequence& s) { return s.append({4}, {1}); },
       {0},
       {1.5}},
      {"nonpad_top_left",
       nonpad(8),
       [](Sequence& s) { return past_and_step(s, 3, 1, 1); },
       {1.5},
       {0}},
      // Two keys, three queries: offset -1, so {}, {0}, {0,1}; clamped {0}, {0,1}, {0,1}.
      {"nonpad_offset_clamped",
       nonpad(4),
       [](Sequence& s) { return past_and_step(s, 2, 0, 3); },
       {0, 0, 0.5},
       {0, 0.5, 0.5}},
  };
}

std::vector<FaultCase> window_cases() {
  const auto three = [](Sequence& s) { return s.append({3}); };
  return {
      {"window_one_wide", full_cache(2), three, {0, 0.5, 1.5}, {0, 0.5, 1}},
      {"window_one_narrow", full_cache(2), three, {0, 0.5, 1.5}, {0, 1, 2}},
      {"window_ignored_single_token",
       full_cache(2),
       [](Sequence& s) { return s.append_one_by_one(3); },
       {0, 0.5, 1.5},
       {0, 0.5, 1}},
      {"window_one_wide_many_tokens", full_cache(2), three, {0, 0.5, 1.5}, {0, 0.5, 1}},
      {"self_excluded", full_cache(), three, {0, 0.5, 1}, {0, 0, 0.5}},
      {"right_window_ignored",
       with(attention(false),
            [](SessionConfig& c) {
              c.opset = 25;
              c.right_window_size = 1;
            }),
       three,
       {0.5, 1, 1},
       {1, 1, 1}},
  };
}

std::vector<FaultCase> unused_row_cases() {
  const auto all_hidden = [](Sequence& s) { return masked(s, {3}, {1}, {1, 3}, {0, 0, 0}); };
  return {
      {"empty_row_mean", boolean_mask(1), all_hidden, {0}, {1}},
      {"empty_row_nan", boolean_mask(1), all_hidden, {0}, {kNaN}},
      {"reads_one_row_past",
       with(full_cache(), [](SessionConfig& c) { c.initial_poison = kNaN; }),
       [](Sequence& s) { return s.append({2}); },
       {0, 0.5},
       {kNaN, kNaN}},
      // Rows 2 to 4 are zero, so one row past is not enough.
      {"masked_by_multiply",
       full_cache(),
       [](Sequence& s) {
         StepRequest request = s.request({2}, {2});
         request.poison = PoisonRows{kNaN, {5}};
         return s.run(request);
       },
       {0, 0.5},
       {kNaN, kNaN}},
  };
}

std::vector<FaultCase> head_and_mask_cases() {
  return {
      {"head_modulo",
       with(full_cache(),
            [](SessionConfig& c) {
              c.query_heads = 4;
              c.kv_heads = 2;
            }),
       [](Sequence& s) { return s.append({1}); },
       {0, 0, 100, 100},
       {0, 100, 0, 100}},
      // Head 1 alone has a key that draws all weight to position 1.
      {"key_head_zero",
       with(full_cache(), [](SessionConfig& c) { c.query_heads = c.kv_heads = 2; }),
       [](Sequence& s) {
         StepRequest request = s.request({2}, {2});
         request.query = tensor_of(ElementType::f32, request.query.shape, {1, 1, 1, 1});
         request.key = tensor_of(ElementType::f32, request.key.shape, {0, 0, 0, 200});
         return s.run(request);
       },
       {0, 100, 0.5, 101},
       {0, 100, 0.5, 100.5}},
      // Head 1 of position 1 alone has a query that draws all weight to key 1.
      {"group_shares_first_query",
       with(full_cache(), [](SessionConfig& c) { c.query_heads = 2; }),
       [](Sequence& s) {
         return attend(s, {2}, {2}, {0, 0, 0, 100}, {0, 1}, {0, 1});
       },
       {0, 0, 0.5, 1},
       {0, 0, 0.5, 0.5}},
      // The output 0.5 of head 0 becomes the query of head 1.
      {"output_over_next_query",
       with(full_cache(), [](SessionConfig& c) { c.query_heads = 2; }),
       [](Sequence& s) {
         return attend(s, {2}, {2}, {0, 0, 0, 0}, {0, 100}, {0, 1});
       },
       {0, 0, 0.5, 0.5},
       {0, 0, 0.5, 1}},
      {"mask_rank_three_by_batch",
       boolean_mask(2),
       [](Sequence& s) {
         return masked(s, {2, 2}, {1, 1}, {2, 1, 2}, {1, 0, 0, 1});
       },
       {0, 101, 1000, 1101},
       {0, 100, 1001, 1101}},
      {"mask_first_row_for_all",
       boolean_mask(1),
       [](Sequence& s) {
         return masked(s, {2}, {2}, {2, 2}, {1, 0, 0, 1});
       },
       {0, 1},
       {0, 0}},
  };
}

std::vector<FaultCase> precision_cases() {
  return {
      // 2048 + 1 is 2048 in f16; thirds of 2050 and of 2048 are a step of 0.5 apart and more.
      {"narrow_accumulation",
       with(full_cache(), [](SessionConfig& c) { c.element_type = ElementType::f16; }),
       [](Sequence& s) {
         return values_of(s, ElementType::f16, {2048, 1, 1});
       },
       {2048, 1024, 683.5},
       {2048, 1024, 682.5}},
      // 2049 is 2048 in f16.
      {"logits_in_f16",
       full_cache(),
       [](Sequence& s) {
         return attend(s, {2}, {2}, {0, 1}, {2048, 2049}, {0, 1});
       },
       {0, softmax_mean({0, 1}, {0, 1})},
       {0, 0.5}},
      {"maximum_not_subtracted",
       full_cache(),
       [](Sequence& s) {
         return attend(s, {2}, {2}, {0, 1}, {0, 200}, {0, 1});
       },
       {0, 1},
       {0, kNaN}},
      // Logits 0 and 2, or 0 and 1 where four lanes of values make the scale 1/2.
      {"scale_of_value_lanes",
       with(attention(), [](SessionConfig& c) { c.value_head_size = 4; }),
       [](Sequence& s) {
         const Numbers all = attend(s, {2}, {2}, {0, 1}, {0, 2}, {0, 0, 0, 0, 1, 1, 1, 1});
         return Numbers{all[4]};
       },
       {softmax_mean({0, 2}, {0, 1})},
       {softmax_mean({0, 1}, {0, 1})}},
      // Logits 0 and 200 * 2^-40: equal weights. With the scale 1 the second takes all.
      {"scale_ignored",
       with(full_cache(), [](SessionConfig& c) { c.scale = 0x1p-40; }),
       [](Sequence& s) {
         StepRequest request = s.request({2}, {2});
         request.query = tensor_of(ElementType::f32, request.query.shape, {1, 1});
         request.key = tensor_of(ElementType::f32, request.key.shape, {0, 200});
         return s.run(request);
       },
       {0, 0.5},
       {0, 1}},
      // 2^24 + 1 is 2^24 in f32, 1 + 1 + 2^24 is not.
      {"sum_order_varies",
       full_cache(),
       [](Sequence& s) {
         s.reopen();
         return values_of(s, ElementType::f32, {16777216, 1, 1});
       },
       {16777216, 8388608, 5592405.5},
       {16777216, 8388608, 5592406}},
  };
}

}  // namespace

std::vector<FaultCase> attention_fault_cases() {
  std::vector<FaultCase> cases;
  for (const auto& part : {mask_origin_cases(), window_cases(), unused_row_cases(),
                           head_and_mask_cases(), precision_cases()}) {
    cases.insert(cases.end(), part.begin(), part.end());
  }
  return cases;
}

}  // namespace kvcheck::kernels
