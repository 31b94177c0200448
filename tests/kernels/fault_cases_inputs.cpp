// Cases of the faults in masks, softcap, sinks, packed inputs and intermediates.
#include <algorithm>
#include <cmath>

#include "tests/kernels/fault_cases.h"

namespace kvcheck::kernels {
namespace {

const double kE = std::exp(1.0);

SessionConfig with_mask(SessionConfig config, const char* kind, std::int64_t heads = 1,
                        std::int64_t kv_heads = 1, std::int64_t batch = 1) {
  config.mask = kind;
  config.query_heads = heads;
  config.kv_heads = kv_heads;
  config.batch = batch;
  return config;
}

Numbers masked(Sequence& sequence, const Counts& tokens, const Counts& queries,
               std::vector<std::int64_t> shape, const Numbers& mask) {
  StepRequest request = sequence.request(tokens, queries);
  request.mask = sequence.mask(std::move(shape), mask);
  return sequence.run(request);
}

std::vector<FaultCase> mask_cases() {
  const SessionConfig additive = with_mask(attention(false), "additive");
  SessionConfig short_masks = with_mask(attention(false), "boolean");
  short_masks.opset = 24;
  return {
      {"mask_of_entry_zero",
       with_mask(attention(false), "boolean", 2, 2, 2),
       [](Sequence& s) {
         return masked(s, {2, 2}, {1, 1}, {2, 1, 1, 2}, {1, 0, 0, 1});
       },
       {0, 100, 1001, 1101},
       {0, 100, 1000, 1100}},
      {"mask_by_kv_head",
       with_mask(attention(false), "boolean", 2, 1),
       [](Sequence& s) {
         return masked(s, {2}, {1}, {2, 1, 2}, {1, 0, 0, 1});
       },
       {0, 1},
       {0, 0}},
      // Query 0 sees key 0 and query 1 key 1, in both heads. Row 1, query 0 of head 1, takes the
      // mask of query 1 of head 0, and the other way round.
      {"mask_head_by_head",
       with_mask(attention(false), "boolean", 2, 1),
       [](Sequence& s) {
         return masked(s, {2}, {2}, {2, 2, 2}, {1, 0, 0, 1, 1, 0, 0, 1});
       },
       {0, 0, 1, 1},
       {0, 1, 0, 1}},
      {"bias_one_column_late",
       additive,
       [](Sequence& s) {
         return masked(s, {3}, {1}, {1, 3}, {0, 0, -kInfinity});
       },
       {0.5},
       {1}},
      // T = 8, rows 3 to 7; the bias of position 7 would be that of row 7.
      {"bias_column_by_row",
       with_mask(block_cache(6, 4), "additive"),
       [](Sequence& s) {
         s.load({7}, {3});
         return masked(s, {1}, {1}, {1, 1, 1, 8}, {0, 0, 0, 0, 0, 0, 0, 100});
       },
       {7},
       {5.5}},
      {"bias_hides_only",
       additive,
       [](Sequence& s) {
         return masked(s, {2}, {1}, {1, 2}, {0, 100});
       },
       {1},
       {0.5}},
      // A bias of 100, or of 1 after a scale of 0.01.
      {"bias_before_scale",
       with(additive, [](SessionConfig& c) { c.scale = 0.01; }),
       [](Sequence& s) {
         return masked(s, {2}, {1}, {1, 2}, {0, 100});
       },
       {1},
       {kE / (1 + kE)}},
      {"missing_columns_visible",
       short_masks,
       [](Sequence& s) {
         return masked(s, {2}, {1}, {1, 1}, {1});
       },
       {0},
       {0.5}},
  };
}

std::vector<FaultCase> softcap_and_sink_cases() {
  const SessionConfig smooth =
      with(full_cache(), [](SessionConfig& c) { c.smooth_softmax = true; });
  const auto three = [](Sequence& s) { return s.append({3}); };
  const auto one_third = 1.0 / 3;
  return {
      // A logit of 50 under a cap of 1.
      {"softcap_ignored",
       with(full_cache(), [](SessionConfig& c) { c.softcap = 1; }),
       [](Sequence& s) {
         return attend(s, {2}, {2}, {0, 1}, {0, 50}, {0, 1});
       },
       {0, kE / (1 + kE)},
       {0, 1}},
      // Key 1 is hidden; a cap of 1 makes -1 of it.
      {"softcap_after_bias",
       with(with_mask(attention(false), "boolean"), [](SessionConfig& c) { c.softcap = 1; }),
       [](Sequence& s) {
         return masked(s, {2}, {1}, {1, 2}, {1, 0});
       },
       {0},
       {1 / (1 + kE)}},
      {"sinks_ignored", smooth, three, {0, one_third, 0.75}, {0, 0.5, 1}},
      {"sink_in_maximum_only", smooth, three, {0, one_third, 0.75}, {0, 0.5, 1}},
      // Head 1 has a sink that takes all.
      {"sink_of_kv_head",
       with(full_cache(),
            [](SessionConfig& c) {
              c.query_heads = 2;
              c.head_sink = tensor_of(ElementType::f32, {2}, {0, 1000});
            }),
       [](Sequence& s) { return s.append({2}); },
       {0, 0, one_third, 0},
       {0, 0, one_third, one_third}},
  };
}

std::vector<FaultCase> packed_cases() {
  const SessionConfig packed = with(full_cache(), [](SessionConfig& c) { c.packed_qkv = true; });
  return {
      {"packed_key_value_swapped",
       packed,
       [](Sequence& s) { return attend(s, {1}, {1}, {0}, {7}, {3}); },
       {3},
       {7}},
      // q0 k0 v0 q1 k1 v1: k0 = 100 passes for q1, and draws all weight to key 0.
      {"packed_query_stride",
       packed,
       [](Sequence& s) {
         return attend(s, {2}, {2}, {0, 0}, {100, 0}, {0, 1});
       },
       {0, 0.5},
       {0, 0}},
      // Token 0 of head 1 passes for token 1 of head 0.
      {"rank_three_heads_first",
       with(attention(false),
            [](SessionConfig& c) {
              c.input_rank = 3;
              c.query_heads = c.kv_heads = 2;
            }),
       [](Sequence& s) {
         return attend(s, {2}, {2}, {0, 100, 0, 0}, {0, 100, 1, 101}, {0, 100, 1, 101});
       },
       {0.5, 101, 0.5, 100.5},
       {0.5, 100.5, 1, 100.5}},
      {"intermediate_of_earlier_stage",
       with(with_mask(full_cache(), "additive"), [](SessionConfig& c) { c.qk_output = "biased"; }),
       [](Sequence& s) {
         masked(s, {1}, {1}, {1, 1, 1, 1}, {5});
         return s.qk();
       },
       {5},
       {0}},
      {"intermediate_of_last_step",
       with(nonpad(2, false), [](SessionConfig& c) { c.qk_output = "probabilities"; }),
       [](Sequence& s) {
         s.append({1});
         s.append({1});
         return s.qk();
       },
       {0.5, 0.5},
       {1, 0}},
      {"intermediate_over_output",
       with(full_cache(), [](SessionConfig& c) { c.qk_output = "probabilities"; }),
       [](Sequence& s) { return attend(s, {1}, {1}, {0}, {0}, {3}); },
       {3},
       {1}},
      // 1 + 2^-9 lies between 1 and 1 + 2^-7, the next number of bf16.
      {"output_rounded_beside_intermediate",
       with(full_cache(), [](SessionConfig& c) { c.qk_output = "probabilities"; }),
       [](Sequence& s) { return attend(s, {1}, {1}, {0}, {0}, {1 + 0x1p-9}); },
       {1 + 0x1p-9},
       {1}},
      {"output_rounded_every_other_session",
       full_cache(),
       [](Sequence& s) {
         s.reopen();
         return attend(s, {1}, {1}, {0}, {0}, {1 + 0x1p-9});
       },
       {1 + 0x1p-9},
       {1}},
  };
}

}  // namespace

Numbers attend(Sequence& sequence, const Counts& tokens, const Counts& queries,
               const Numbers& query, const Numbers& key, const Numbers& value) {
  StepRequest request = sequence.request(tokens, queries);
  const ElementType type = request.query.type;
  request.query = tensor_of(type, request.query.shape, query);
  request.key = tensor_of(type, request.key.shape, key);
  request.value = tensor_of(type, request.value.shape, value);
  return sequence.run(request);
}

double softmax_mean(const Numbers& keys, const Numbers& values) {
  const double most = *std::max_element(keys.begin(), keys.end());
  double sum = 0, total = 0;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const double weight = std::exp(keys[i] - most);
    sum += weight * values[i];
    total += weight;
  }
  return sum / total;
}

std::vector<FaultCase> input_fault_cases() {
  std::vector<FaultCase> cases;
  for (const auto& part : {mask_cases(), softcap_and_sink_cases(), packed_cases()}) {
    cases.insert(cases.end(), part.begin(), part.end());
  }
  return cases;
}

}  // namespace kvcheck::kernels
