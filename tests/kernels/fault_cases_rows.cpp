// Cases of the faults in rotary embedding, norms and codes.
#include <cmath>

#include "tests/kernels/fault_cases.h"

namespace kvcheck::kernels {
namespace {

// ---- quarter turns: position p turns by p right angles ----

SessionConfig turning(SessionConfig config, std::int64_t lanes, std::int64_t pairs) {
  constexpr double kCos[] = {1, 0, -1, 0}, kSin[] = {0, 1, 0, -1};
  config.head_size = config.value_head_size = lanes;
  RotaryConfig rotary;
  Numbers cos, sin;
  for (std::int64_t i = 0; i < 16 * pairs; ++i) {
    cos.push_back(kCos[i / pairs % 4]);
    sin.push_back(kSin[i / pairs % 4]);
  }
  rotary.cos = tensor_of(ElementType::f32, {16, pairs}, cos);
  rotary.sin = tensor_of(ElementType::f32, {16, pairs}, sin);
  config.rotary = rotary;
  return config;
}

/// Appends keys that all hold `row`.
void append_keys(Sequence& sequence, const Counts& tokens, const Numbers& row) {
  StepRequest request = sequence.request(tokens, tokens);
  Numbers keys;
  while (static_cast<std::int64_t>(keys.size()) < request.key.elements()) {
    keys.insert(keys.end(), row.begin(), row.end());
  }
  request.key = tensor_of(ElementType::f32, request.key.shape, keys);
  sequence.run(request);
}

// (0, 1) turned by p right angles begins with -sin.
Numbers turned_keys(Sequence& sequence, std::int64_t steps, std::int64_t rows) {
  for (std::int64_t i = 0; i < steps; ++i) append_keys(sequence, {1}, {0, 1});
  return sequence.keys(rows);
}

std::vector<FaultCase> position_cases() {
  const SessionConfig one_pair = turning(full_cache(), 2, 1);
  return {
      {"rotary_position_by_row",
       turning(block_cache(6, 4), 2, 1),
       [](Sequence& s) { return turned_keys(s, 8, 5); },
       {1, 0, -1, 0, 1},
       {1, 0, -1, 0, 0}},
      {"rotary_position_by_step",
       one_pair,
       [](Sequence& s) { return turned_keys(s, 2, 2); },
       {0, -1},
       {0, 0}},
      {"rotary_position_of_longest",
       with(one_pair, [](SessionConfig& c) { c.batch = 2; }),
       [](Sequence& s) {
         s.load({1, 0});
         append_keys(s, {1, 1}, {0, 1});
         return s.keys(1, 1);
       },
       {0},
       {-1}},
      // The query (1, 0) of position 1 turns to meet its own key; left at 0 it meets key 0.
      {"rotary_queries_at_first_position",
       with(one_pair, [](SessionConfig& c) { c.scale = 200; }),
       [](Sequence& s) {
         return attend(s, {2}, {2}, {1, 0, 1, 0}, {1, 0, 1, 0}, {0, 0, 1, 1});
       },
       {0, 0, 1, 1},
       {0, 0, 0, 0}},
      {"position_ids_ignored",
       with(one_pair, [](SessionConfig& c) { c.rotary->position_ids = true; }),
       [](Sequence& s) {
         StepRequest request = s.request({1}, {1});
         request.key = tensor_of(ElementType::f32, request.key.shape, {0, 1});
         request.position_ids = Tensor::zeros(ElementType::i64, {1, 1});
         request.position_ids->bytes[0] = std::byte{1};
         s.run(request);
         return s.keys(1);
       },
       {-1},
       {0}},
      // Position 1 turned twice is turned by two right angles.
      {"keys_turned_twice_after_rollback",
       one_pair,
       [](Sequence& s) {
         turned_keys(s, 2, 2);
         s.rollback({1});
         return turned_keys(s, 1, 2);
       },
       {0, -1},
       {0, 0}},
  };
}

std::vector<FaultCase> turn_cases() {
  return {
      {"rotary_turned_backwards",
       turning(full_cache(), 2, 1),
       [](Sequence& s) { return turned_keys(s, 4, 4); },
       {0, -1, 0, 1},
       {0, 1, 0, -1}},
      // Lane 2 is the partner of lane 0, or lane 1 where pairs are interleaved.
      {"rotary_layout_swapped",
       turning(full_cache(), 4, 2),
       [](Sequence& s) {
         append_keys(s, {2}, {0, 0, 1, 0});
         return s.keys(2);
       },
       {0, -1},
       {0, 0}},
      // One pair: lane 1 is the partner of lane 0, and not lane 2, half a head on.
      {"rotary_pairs_over_whole_head",
       turning(full_cache(), 4, 1),
       [](Sequence& s) {
         append_keys(s, {2}, {0, 1, 0, 0});
         return s.keys(2);
       },
       {0, -1},
       {0, 0}},
  };
}

SessionConfig normalising(SessionConfig config, const Numbers& key_weight) {
  config.head_size = config.value_head_size = 2;
  QkNormConfig norm;
  norm.epsilon = 1e-12;
  norm.query_weight = tensor_of(ElementType::f32, {2}, {1, 1});
  norm.key_weight = tensor_of(ElementType::f32, {2}, key_weight);
  config.qk_norm = norm;
  return config;
}

std::vector<FaultCase> norm_cases() {
  const auto first_lane = [](Numbers key) {
    return [key](Sequence& s) {
      append_keys(s, {1}, key);
      return s.keys(1);
    };
  };
  const SessionConfig doubling = normalising(full_cache(), {2, 2});
  return {
      {"norm_weights_swapped", doubling, first_lane({1, 1}), {2}, {1}},
      // (1, 3) has the mean square 5 and the mean 2.
      {"norm_removes_mean", doubling, first_lane({1, 3}), {2 / std::sqrt(5.0)}, {-2}},
      {"norm_of_queries_only", doubling, first_lane({3, 3}), {2}, {3}},
      // (1, 1) times (2, 1) turned by a right angle, or turned and then times (2, 1).
      {"norm_after_rotary",
       turning(normalising(full_cache(), {2, 1}), 2, 1),
       [](Sequence& s) {
         append_keys(s, {2}, {1, 1});
         return s.keys(2);
       },
       {2, -1},
       {2, -2}},
  };
}

// ---- codes ----

/// One scale each for keys and values.
SessionConfig coded(const char* kind, double key_scale, double value_scale) {
  SessionConfig config = full_cache();
  config.quantisation.kind = kind;
  config.quantisation.key_scale = tensor_of(ElementType::f32, {1}, {key_scale});
  config.quantisation.value_scale = tensor_of(ElementType::f32, {1}, {value_scale});
  return config;
}

/// A scale for every KV head and lane.
SessionConfig coded_channels(const char* kind, std::int64_t heads, std::int64_t lanes,
                             const Numbers& scales) {
  SessionConfig config = coded(kind, 1, 1);
  config.query_heads = config.kv_heads = heads;
  config.head_size = config.value_head_size = lanes;
  config.quantisation.per_channel = true;
  config.quantisation.key_scale = tensor_of(ElementType::f32, {heads, lanes}, scales);
  config.quantisation.value_scale = config.quantisation.key_scale;
  return config;
}

/// The output of one token whose values are these: what they read back as.
std::function<Numbers(Sequence&)> read_back(Numbers values) {
  return [values](Sequence& s) {
    const Numbers zeros(values.size(), 0);
    return attend(s, {1}, {1}, zeros, zeros, values);
  };
}

void add_code_cases(const char* kind, double highest, std::vector<FaultCase>& cases) {
  const double lowest = -highest - 1;
  const SessionConfig whole = coded(kind, 1, 1);
  const std::vector<FaultCase> more{
      {"scale_floor_one", coded(kind, 1, 0.5), read_back({1.5}), {1.5}, {2}},
      {"key_scale_for_values", coded(kind, 1, 0.5), read_back({1.5}), {1.5}, {2}},
      {"channel_scales_as_one",
       coded_channels(kind, 1, 2, {1, 0.5}),
       read_back({1.5, 1.5}),
       {2, 1.5},
       {2, 2}},
      {"channel_scales_of_head_zero",
       coded_channels(kind, 2, 1, {1, 0.5}),
       read_back({1.5, 1.5}),
       {2, 1.5},
       {2, 2}},
      {"channel_scales_transposed",
       coded_channels(kind, 2, 2, {1, 0.5, 1, 1}),
       read_back({1.5, 1.5, 1.5, 1.5}),
       {2, 1.5, 2, 2},
       {2, 2, 1.5, 2}},
      {"codes_truncated", whole, read_back({1.75}), {2}, {1}},
      {"codes_rounded_half_away", whole, read_back({2.5}), {2}, {3}},
      {"codes_wrap_around", whole, read_back({highest + 3}), {highest}, {lowest + 2}},
      {"codes_clamped_symmetrically", whole, read_back({2 * lowest}), {lowest}, {-highest}},
  };
  cases.insert(cases.end(), more.begin(), more.end());
}

std::vector<FaultCase> code_cases() {
  std::vector<FaultCase> cases;
  add_code_cases("int8", 127, cases);
  add_code_cases("int4", 7, cases);
  const SessionConfig two =
      with(coded("int4", 1, 1), [](SessionConfig& c) { c.head_size = c.value_head_size = 2; });
  cases.push_back({"nibbles_swapped", two, read_back({1, 2}), {1, 2}, {2, 1}});
  cases.push_back({"nibbles_in_twos_complement", two, read_back({1, 2}), {1, 2}, {-7, -6}});
  return cases;
}

}  // namespace

std::vector<FaultCase> row_fault_cases() {
  std::vector<FaultCase> cases;
  for (const auto& part : {position_cases(), turn_cases(), norm_cases(), code_cases()}) {
    cases.insert(cases.end(), part.begin(), part.end());
  }
  return cases;
}

}  // namespace kvcheck::kernels
