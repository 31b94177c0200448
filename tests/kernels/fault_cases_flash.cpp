// Cases of the faults in tiles, vectors, chunks and threads of cpu-flash.
#include <cmath>

#include "tests/kernels/fault_cases.h"

namespace kvcheck::kernels {
namespace {

const double kE = std::exp(1.0);

/// A full cache of `rows` rows of one lane.
SessionConfig roomy(std::int64_t rows) {
  return with(full_cache(), [&](SessionConfig& c) { c.capacity = rows; });
}

SessionConfig threaded(SessionConfig config) {
  config.threads = 2;
  return config;
}

SessionConfig smooth(SessionConfig config) {
  config.smooth_softmax = true;
  return config;
}

/// One token behind `past` coded ones; its output is the mean of the positions that it sees.
std::function<Numbers(Sequence&)> mean_behind(std::int64_t past) {
  return [past](Sequence& s) {
    s.load({past});
    return s.append({1});
  };
}

/// A query of 1 behind keys and values of one lane; the last ones are its own.
Numbers last_query(Sequence& sequence, const Numbers& keys, const Numbers& values) {
  const auto rows = static_cast<std::int64_t>(keys.size()), past = rows - 1;
  const auto loaded =
      sequence.session().load({{past},
                               {tensor_of(ElementType::f32, {1, 1, rows, 1}, keys),
                                tensor_of(ElementType::f32, {1, 1, rows, 1}, values)}});
  if (!std::holds_alternative<std::monostate>(loaded)) return {};
  return attend(sequence, {1}, {1}, {1}, {keys.back()}, {values.back()});
}

/// Logits 0 but for a 1 at the end, and values 0 but for a 1 there: a rise of the maximum.
std::function<Numbers(Sequence&)> rise_after(std::int64_t count) {
  return [count](Sequence& s) {
    Numbers numbers(static_cast<std::size_t>(count), 0);
    numbers.push_back(1);
    return last_query(s, numbers, numbers);
  };
}

/// Numbers around 2 whose sum depends on its order.
Numbers uneven(std::int64_t count, double step) {
  Numbers numbers;
  for (std::int64_t i = 0; i < count; ++i) {
    const double number = 2 + std::sin(step * static_cast<double>(i));
    numbers.push_back(static_cast<double>(static_cast<float>(number)));
  }
  return numbers;
}

/// A prompt of uneven numbers, whose outputs another order of sums changes in their last bits.
FaultCase order_case(const char* fault, SessionConfig config) {
  constexpr std::int64_t kTokens = 90;
  config.capacity = kTokens;
  const Numbers keys = uneven(kTokens, 0.7), values = uneven(kTokens, 1.3);
  Numbers all_keys, all_values, right;
  for (std::int64_t b = 0; b < config.batch; ++b) {
    all_keys.insert(all_keys.end(), keys.begin(), keys.end());
    all_values.insert(all_values.end(), values.begin(), values.end());
    for (auto seen = 1; seen <= kTokens; ++seen) {
      right.push_back(softmax_mean({keys.begin(), keys.begin() + seen},
                                   {values.begin(), values.begin() + seen}));
    }
  }
  const Counts tokens(static_cast<std::size_t>(config.batch), kTokens);
  return {fault,
          config,
          [=](Sequence& s) {
            return attend(s, tokens, tokens, Numbers(all_keys.size(), 1), all_keys, all_values);
          },
          right,
          {}};
}

std::vector<FaultCase> tile_cases() {
  return {
      {"last_key_of_tile_dropped", roomy(64), mean_behind(63), {31.5}, {31}},
      {"first_key_of_tile_dropped", roomy(65), mean_behind(64), {32}, {31.5}},
      // Sees 7, 8, 9; back from 7 to a multiple of eight, all.
      {"window_edge_rounded_down", full_cache(3), mean_behind(9), {8}, {4.5}},
      {"causal_edge_rounded_up",
       full_cache(),
       [](Sequence& s) { return s.append({3}); },
       {0, 0.5, 1},
       {1, 1, 1}},
      {"odd_row_shares_visibility",
       full_cache(),
       [](Sequence& s) { return s.append({2}); },
       {0, 0.5},
       {0, 0}},
      {"keys_beyond_vector_dropped", full_cache(), mean_behind(9), {4.5}, {3.5}},
      // Values 0, 1 and 2; without the 2 the sum is 1.
      {"odd_value_dropped", full_cache(), mean_behind(2), {1}, {1.0 / 3}},
      {"query_tail_dropped",
       full_cache(),
       [](Sequence& s) {
         return attend(s, {2}, {2}, {0, 1}, {0, 100}, {0, 1});
       },
       {0, 1},
       {0, 0.5}},
      {"query_tail_unscaled",
       with(full_cache(), [](SessionConfig& c) { c.scale = 0.01; }),
       [](Sequence& s) {
         return attend(s, {2}, {2}, {0, 1}, {0, 100}, {0, 1});
       },
       {0, kE / (1 + kE)},
       {0, 1}},
      // Lanes 0 0 1 1 2 2; a step of one lane gives the rows (0, 0), (0, 1), (1, 1).
      {"value_stride_of_keys",
       with(attention(), [](SessionConfig& c) { c.value_head_size = 2; }),
       [](Sequence& s) { return s.append({3}); },
       {0, 0, 0.5, 0.5, 1, 1},
       {0, 0, 0, 0.5, 1.0 / 3, 2.0 / 3}},
  };
}

std::vector<FaultCase> softmax_cases() {
  return {
      {"maximum_starts_at_zero",
       full_cache(),
       [](Sequence& s) { return attend(s, {1}, {1}, {1}, {-200}, {5}); },
       {5},
       {0}},
      {"rescale_skips_sums", roomy(65), rise_after(64), {1 / (64 / kE + 1)}, {1.0 / 65}},
      {"rescale_skips_outputs",
       roomy(65),
       [](Sequence& s) {
         Numbers keys(64, 0), values(64, 1);
         keys.push_back(1);
         values.push_back(0);
         return last_query(s, keys, values);
       },
       {64 / kE / (64 / kE + 1)},
       {64 / (64 / kE + 1)}},
      {"exp_of_low_order",
       full_cache(),
       [](Sequence& s) {
         return attend(s, {2}, {2}, {0, 1}, {0, -0.3}, {0, 1});
       },
       {0, softmax_mean({0, -0.3}, {0, 1})},
       {}},
      {"weights_in_bf16",
       full_cache(),
       [](Sequence& s) {
         return attend(s, {2}, {2}, {0, 1}, {0, -0.5}, {0, 1});
       },
       {0, softmax_mean({0, -0.5}, {0, 1})},
       {}},
      // 3/5 lies between 1228 and 1229 units of 2^-11, nearer to the second.
      {"output_truncated",
       with(full_cache(), [](SessionConfig& c) { c.element_type = ElementType::f16; }),
       [](Sequence& s) {
         return Numbers{attend(s, {5}, {5}, {0, 0, 0, 0, 0}, {0, 0, 0, 0, 0}, {1, 1, 1, 0, 0})[4]};
       },
       {1229.0 / 2048},
       {1228.0 / 2048}},
      {"bias_hides_by_finite",
       with(full_cache(), [](SessionConfig& c) { c.mask = "additive"; }),
       [](Sequence& s) {
         StepRequest request = s.request({2}, {2});
         request.mask = s.mask({1, 1, 2, 2}, Numbers(4, -kInfinity));
         return s.run(request);
       },
       {0, 0},
       {0, 0.5}},
      // The second query adds its 0 and 1 to the 0 of the first.
      {"sums_kept_between_calls",
       full_cache(),
       [](Sequence& s) { return s.append_one_by_one(2); },
       {0, 0.5},
       {0, 1.0 / 3}},
      {"empty_unit_not_cleared",
       nonpad(4),
       [](Sequence& s) {
         s.load({2});
         s.append({1}, {1});
         s.load({0});
         return s.append({0}, {1});
       },
       {0},
       {}},
  };
}

std::vector<FaultCase> merge_cases() {
  const double rest = 512 / kE;  // 512 keys with the logit 0 under a maximum of 1.
  return {
      // 600 keys: the first chunk has 512.
      {"last_chunk_dropped", roomy(600), mean_behind(599), {299.5}, {255.5}},
      {"merge_without_rescale", roomy(513), rise_after(512), {1 / (rest + 1)}, {1.0 / 513}},
      // The sink of 0 counts 1 instead of 1/e.
      {"merge_forgets_maximum",
       smooth(roomy(513)),
       rise_after(512),
       {1 / (rest + 1 + 1 / kE)},
       {1 / (rest + 2)}},
      {"merge_takes_last_chunk", roomy(513), rise_after(512), {1 / (rest + 1)}, {1}},
      // The query at 511 sees nothing in the second chunk.
      {"merge_counts_empty_chunk",
       with(roomy(513), [](SessionConfig& c) { c.window_size = 1; }),
       [](Sequence& s) {
         s.load({511});
         return s.append({2});
       },
       {511, 512},
       {255.5, 512}},
  };
}

/// Three chunks of keys, the last one longer and longer.
constexpr std::int64_t kLongSteps[] = {1100, 1150, 1200, 1250, 1300, 1350, 1400, 1450};

Numbers three_chunks(Sequence& sequence) {
  Numbers outputs;
  for (const std::int64_t count : kLongSteps) {
    Numbers keys = uneven(count, 0.7), values = uneven(count, 1.3);
    const double key = keys.back(), value = values.back();
    keys.resize(1500);
    values.resize(1500);
    (void)sequence.session().load({{count - 1},
                                   {tensor_of(ElementType::f32, {1, 1, 1500, 1}, keys),
                                    tensor_of(ElementType::f32, {1, 1, 1500, 1}, values)}});
    outputs.push_back(attend(sequence, {1}, {1}, {1}, {key}, {value})[0]);
  }
  return outputs;
}

Numbers three_chunk_means() {
  Numbers means;
  for (const std::int64_t count : kLongSteps) {
    means.push_back(softmax_mean(uneven(count, 0.7), uneven(count, 1.3)));
  }
  return means;
}

std::vector<FaultCase> thread_cases() {
  return {
      {"merge_before_last_chunk", threaded(roomy(600)), mean_behind(599), {299.5}, {255.5}},
      // As sums_kept_between_calls; one thread does both.
      {"threads_share_accumulator",
       threaded(full_cache()),
       [](Sequence& s) { return s.append_one_by_one(2); },
       {0, 0.5},
       {0, 1.0 / 3}},
      {"threads_drop_last_unit",
       threaded(with(full_cache(), [](SessionConfig& c) { c.batch = 3; })),
       [](Sequence& s) {
         return s.append({1, 1, 1});
       },
       {0, 1000, 2000},
       {0, 1000, 0}},
      {"split_ignores_sinks",
       threaded(smooth(full_cache())),
       [](Sequence& s) { return s.append({3}); },
       {0, 1.0 / 3, 0.75},
       {0, 0.5, 1}},
      {"split_merged_backwards", threaded(roomy(1500)), three_chunks, three_chunk_means(), {}},
      order_case("sum_order_by_threads", threaded(full_cache())),
      order_case("sum_order_by_batch", with(full_cache(), [](SessionConfig& c) { c.batch = 2; })),
      order_case("sum_order_by_instructions",
                 with(full_cache(), [](SessionConfig& c) { c.isa = "avx2"; })),
      order_case("weights_in_bf16_by_instructions",
                 with(full_cache(), [](SessionConfig& c) { c.isa = "avx2"; })),
  };
}

}  // namespace

std::vector<FaultCase> flash_fault_cases() {
  std::vector<FaultCase> cases;
  for (const auto& part : {tile_cases(), softmax_cases(), merge_cases(), thread_cases()}) {
    cases.insert(cases.end(), part.begin(), part.end());
  }
  return cases;
}

}  // namespace kvcheck::kernels
