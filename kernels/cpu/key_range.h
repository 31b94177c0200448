// Which positions a query may see, before the mask tensor.
//
// gqa: j <= p when causal, j > p - W with a window, with p = P + s, or T - Sq + s where a step asks
// queries without tokens (contract of GroupQueryAttention, 1.4.7 and 1.4.12). attention: j <= p
// when causal, p - W < j <= p + right with windows, causal or not; p = offset + i with offset = P
// with a past, 0 without, nonpad[b] - Sq with nonpad_kv_seqlen, not clamped (ONNX Attention 23 to
// 25).
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "kernels/cpu/cache.h"
#include "kernels/target.h"

namespace kvcheck::kernels {

/// Positions [begin, end).
struct KeyRange {
  std::int64_t begin = 0, end = 0;
};

/// Everything that decides what one query sees.
struct QueryCase {
  bool causal = true;
  bool from_end = false;     ///< The last query meets the last key.
  std::int64_t window = -1;  ///< Keys seen, the query's own included; -1 = no window.
  std::int64_t right = -1;   ///< Keys seen after its own; -1 = no limit.
  std::int64_t past = 0;     ///< P.
  std::int64_t length = 0;   ///< T: keys at or beyond it do not exist.
  std::int64_t anchor = 0;   ///< Length that from_end counts back from: T.
  std::int64_t tokens = 0;   ///< S.
  std::int64_t queries = 0;
  std::int64_t query = 0;  ///< 0-based in the step.
};

/// gqa: a step that asks queries of what the cache holds, and brings no token.
inline bool asks_without_tokens(const SessionConfig& config, const StepRequest& request) {
  const auto none = [](const std::vector<std::int64_t>& counts) {
    return std::all_of(counts.begin(), counts.end(), [](std::int64_t n) { return n == 0; });
  };
  return config.op == std::string_view("gqa") && none(request.tokens) && !none(request.queries);
}

/// The case of query `query` of an entry; \param alone asks_without_tokens of the step.
inline QueryCase query_case(const SessionConfig& config, const EntryPlan& plan, bool alone,
                            std::int64_t queries, std::int64_t query) {
  QueryCase at;
  at.causal = config.causal;
  at.from_end = config.nonpad_kv_seqlen || alone;
  at.window = config.window_size;
  at.right = config.right_window_size;
  at.past = plan.past;
  at.length = at.anchor = plan.length();
  at.tokens = plan.tokens;
  at.queries = queries;
  at.query = query;
  return at;
}

/// Absolute position of the query; negative for leading queries when from_end and queries > T.
inline std::int64_t query_position(const QueryCase& at) {
  return (at.from_end ? at.anchor - at.queries : at.past) + at.query;
}

/// Empty (begin >= end) when the query sees no key.
inline KeyRange key_range(const QueryCase& at) {
  const std::int64_t position = query_position(at);
  KeyRange range{0, at.length};
  if (at.causal) range.end = std::min(range.end, position + 1);
  if (at.right >= 0) range.end = std::min(range.end, position + at.right + 1);
  if (at.window >= 0) range.begin = std::max<std::int64_t>(0, position - at.window + 1);
  return range;
}

}  // namespace kvcheck::kernels
