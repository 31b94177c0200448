// What the kernels of kernels/cuda are given. Pointers are those of the device's memory; counts of
// rows and strides are 64 bits wide everywhere.
#pragma once

#include <cstdint>

namespace kvcheck::kernels::device {

/// One batch entry as attention sees it: rows of the cache, or of the stage that its step runs on.
/// Row r of KV head n begins at key + n * key_head_stride + r * (bytes of a row), and so for value;
/// rows lie next to each other. Row r holds position first_position + r.
struct EntryView {
  const void* key;
  const void* value;
  std::int64_t key_head_stride;    ///< Bytes.
  std::int64_t value_head_stride;  ///< Bytes.
  std::int64_t first_position;
  std::int64_t live;    ///< Rows [0, live) hold tokens; nothing behind them may have influence.
  std::int64_t origin;  ///< Position of query 0; negative where there are more queries than tokens.
  std::int64_t queries;  ///< Of this entry; at most AttentionParameters::queries.
};

enum class MaskKind : std::int32_t { none, boolean, additive };

/// Query i of an entry is at position p = origin + i. It sees positions j with first_position <= j
/// < first_position + live, and j <= p where causal, j > p - window where window >= 0,
/// j <= p + right where right >= 0, and no column of the mask that says no. One that sees nothing
/// gets zeros.
struct AttentionParameters {
  const EntryView* entries;  ///< [batch]
  const void* query;         ///< [batch, queries, query_heads, head_size]
  void* output;              ///< [batch, queries, query_heads, value_head_size], rows of queries
                             ///< that an entry does not have are left alone
  const void* mask;          ///< Element type, or bytes of 0 and 1; column = position.
  std::int64_t mask_entry_stride, mask_head_stride, mask_query_stride;  ///< Elements.
  std::int64_t mask_columns;   ///< Columns that are missing hide their keys.
  const float* sinks;          ///< [query_heads] one more logit each, or null.
  const float* key_scale;      ///< int8 caches: [1], or [kv_heads, head_size] per channel.
  const float* value_scale;    ///< int8 caches: [1], or [kv_heads, value_head_size].
  std::int64_t window, right;  ///< -1 = no limit.
  std::int64_t queries;        ///< Most of any entry.
  std::int32_t batch, query_heads, kv_heads, head_size, value_head_size;
  MaskKind mask_kind;
  bool causal;
  bool per_channel;
  float scale;    ///< Of q.k, before the cap.
  float softcap;  ///< 0 = none; cap * tanh(x / cap) before the bias.
  /// Positions of a split, a multiple of the kernel's tile: a split covers positions
  /// [k * split_positions, (k + 1) * split_positions), so that where splits end depends on
  /// positions alone, not on the cache or on the other entries.
  std::int64_t split_positions;
  std::int64_t splits;       ///< Most of any entry; 1 = no merge.
  std::int64_t first_split;  ///< Number k of the first split of the grid.
  /// Scratch of `splits` partial results for each query and query head.
  float* partial_outputs;  ///< [batch, queries, query_heads, splits, value_head_size]
  float* partial_maxima;   ///< [batch, queries, query_heads, splits], base 2
  float* partial_sums;     ///< The same.
  float* scores;           ///< Unfused: [batch, query_heads, queries, most live rows]
  std::int64_t score_columns;
};

/// Rows that a step brings to one entry.
struct AppendEntry {
  void* key;  ///< Where row 0 of KV head 0 lies, cache or stage.
  void* value;
  std::int64_t key_head_stride, value_head_stride;  ///< Bytes.
  std::int64_t first_row;                           ///< Row of the first new token.
  std::int64_t tokens;
};

/// Stores new rows, quantised to int8 where scales are given.
struct AppendParameters {
  const AppendEntry* entries;  ///< [batch]
  const void* key;             ///< [batch, tokens, kv_heads, head_size]
  const void* value;           ///< [batch, tokens, kv_heads, value_head_size]
  const float* key_scale;      ///< As in AttentionParameters; null = stored as they are.
  const float* value_scale;
  std::int64_t tokens;  ///< Most of any entry.
  std::int32_t batch, kv_heads, head_size, value_head_size;
  std::int32_t element_bytes;  ///< Of key and value as given: 2 or 4.
  bool per_channel;
};

/// Moves rows [from, from + rows) of each KV head to [to, to + rows): within a buffer, where the
/// two may overlap in either direction, or from one buffer to another.
struct MoveEntry {
  const void* key_from;
  void* key_to;
  const void* value_from;
  void* value_to;
  std::int64_t key_from_stride, key_to_stride, value_from_stride, value_to_stride;  ///< Bytes.
  std::int64_t from, to, rows;
};

struct MoveParameters {
  const MoveEntry* entries;  ///< [batch]
  std::int64_t key_row_bytes, value_row_bytes;
  std::int32_t batch, kv_heads;
};

}  // namespace kvcheck::kernels::device
