// Which positions a query may see, before the mask tensor.
//
// gqa: j <= p when causal, j > p - W with a window, with p = P + s (contract of
// GroupQueryAttention). attention: j <= i + offset when causal; offset = P with a past, 0 without,
// nonpad[b] - Sq with nonpad_kv_seqlen, not clamped (ONNX Attention 23 and 24).
#pragma once

#include <algorithm>
#include <cstdint>

namespace kvcheck::kernels {

/// Positions [begin, end).
struct KeyRange {
  std::int64_t begin = 0, end = 0;
};

/// Everything that decides what one query sees.
struct QueryCase {
  bool causal = true;
  bool from_end = false;     ///< nonpad_kv_seqlen: the last query meets the last key.
  std::int64_t window = -1;  ///< Keys seen, the query's own included; -1 = no window.
  std::int64_t past = 0;     ///< P.
  std::int64_t length = 0;   ///< T: keys at or beyond it do not exist.
  std::int64_t anchor = 0;   ///< Length that from_end counts back from: T.
  std::int64_t tokens = 0;   ///< S.
  std::int64_t queries = 0;
  std::int64_t query = 0;  ///< 0-based in the step.
};

/// Absolute position of the query; negative for leading queries when from_end and queries > T.
inline std::int64_t query_position(const QueryCase& at) {
  return (at.from_end ? at.anchor - at.queries : at.past) + at.query;
}

/// Empty (begin >= end) when the query sees no key.
inline KeyRange key_range(const QueryCase& at) {
  const std::int64_t position = query_position(at);
  KeyRange range{0, at.length};
  if (at.causal) range.end = std::min(range.end, position + 1);
  if (at.window >= 0) range.begin = std::max<std::int64_t>(0, position - at.window + 1);
  return range;
}

}  // namespace kvcheck::kernels
