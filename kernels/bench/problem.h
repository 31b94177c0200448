// Problem: what one benchmark computes, as plain numbers, with its data.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernels/target.h"

namespace kvcheck::kernels::bench {

/// One GroupQueryAttention sequence (batch 1). decode: one token with T - 1 in the cache. prefill:
/// all T tokens in one step. windowed: single-token steps on a cache that evicts.
struct Problem {
  std::string operation = "decode";  ///< "decode", "prefill", "windowed".
  std::int64_t query_heads = 64, kv_heads = 8, head_size = 64;
  std::string element_type = "f32";  ///< Of the cache: "f32", "f16", "bf16", "int8", "int4".
  std::int64_t length = 128;         ///< T when the output is taken.
  std::int64_t window = 0;           ///< Keys seen; 0 = no window.
  std::int64_t capacity = 0;         ///< C of a windowed cache; 0 = a full cache.
  std::string layout = "full";       ///< "full", "block", "min_overflow".
  std::uint64_t seed = 1;
  friend bool operator==(const Problem&, const Problem&) = default;

  bool quantised() const { return element_type == "int8" || element_type == "int4"; }
  std::int64_t tokens() const { return operation == "prefill" ? length : 1; }
  /// Keys that the query at the last position sees.
  std::int64_t keys() const { return window > 0 && window < length ? window : length; }
  /// Steps until the layout repeats: G = C - W + 1 of a block cache, else 1.
  std::int64_t cycle() const { return layout == "block" ? capacity - window + 1 : 1; }
  std::string shape() const;  ///< "64/8/64"
};

/// Floating-point operations of one step: 4 * Nq * H for each (query, key) that is seen.
double flops(const Problem& problem);
/// Bytes of keys and values that one step has to read once: those that its queries see.
double bytes_read(const Problem& problem);

enum class DataTensor { query = 0, key = 1, value = 2 };

/// Elements [begin, begin + codes.size()) of a tensor as codes in [-127, 127]: the top byte of
/// SplitMix64 of the element's place. The peers' worker has the same function, so that both ends
/// compute on the same data; every element type holds code / 128 exactly.
void data_codes(std::uint64_t seed, DataTensor tensor, std::int64_t begin,
                std::span<std::int8_t> codes);

/// Row of one token and KV head (key, value), or of one query and query head, as numbers: codes of
/// the cache's element type times its scale (1/128; int4: 1/8).
std::vector<double> data_row(const Problem& problem, DataTensor tensor, std::int64_t head,
                             std::int64_t token);

/// Session, cache content and steps of a problem.
SessionConfig session_config(const Problem& problem, int threads);
/// Tokens [0, tokens) in the first rows of a full cache; the others are 0.
LoadRequest load_request(const Problem& problem, std::int64_t tokens);
/// Appends the tokens [begin, end) and asks their queries.
StepRequest step_request(const Problem& problem, std::int64_t begin, std::int64_t end);

}  // namespace kvcheck::kernels::bench
