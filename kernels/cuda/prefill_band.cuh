// Which rows a block of prefill answers, and which tiles of keys they see.
//
// Rows of a KV head are numbered query by query, the query heads of its group side by side, so
// that few queries fill a tile and a tile spans few positions.
#pragma once

#include "kernels/cuda/parameters.h"
#include "kernels/cuda/prefill_shape.cuh"

namespace kvcheck::kernels::device {
namespace {
namespace prefill {

/// Absolute positions [begin, end).
struct Band {
  std::int64_t begin, end;
};

/// The rows of one block.
struct QueryTile {
  std::int64_t entry, kv_head;
  std::int64_t first_query;  ///< Of row 0.
  unsigned first_head;       ///< Of row 0, within the group.
  unsigned group;            ///< Query heads of a KV head.
  unsigned rows;             ///< That exist.
};

struct QueryRow {
  std::int64_t query;
  std::int64_t head;
};

/// The tiles of keys that a block visits, numbered from 0.
struct KeyTiles {
  std::int64_t first_position;  ///< Of tile 0.
  unsigned count;
  unsigned head, tail;          ///< Rows [head, 64) of the first and [0, tail) of the last count.
  unsigned all_begin, all_end;  ///< Tiles [all_begin, all_end) are seen whole by every row.
};

/// Blocks are numbered so that neighbours share keys, and those with most of them begin first.
template <class S>
KV_DEVICE QueryTile query_tile(const AttentionParameters& p) {
  const unsigned rows_of_block = threads_of_block<S>() / 32 * S::kWarpRows;
  const unsigned kv_heads = static_cast<unsigned>(p.kv_heads);
  const unsigned columns = kv_heads * static_cast<unsigned>(p.batch);
  const unsigned column = block_index().x % columns;
  const unsigned number = grid_size().x / columns - 1 - block_index().x / columns;
  QueryTile tile;
  tile.kv_head = column % kv_heads;
  tile.entry = column / kv_heads;
  tile.group = static_cast<unsigned>(p.query_heads) / kv_heads;
  const std::int64_t first = static_cast<std::int64_t>(number) * rows_of_block;
  tile.first_query = first / tile.group;
  tile.first_head = static_cast<unsigned>(first % tile.group);
  const std::int64_t rest = p.entries[tile.entry].queries * tile.group - first;
  tile.rows = static_cast<unsigned>(rest < 0 ? 0 : rest < rows_of_block ? rest : rows_of_block);
  return tile;
}

KV_DEVICE QueryRow query_row(const QueryTile& tile, unsigned row) {
  const unsigned at = tile.first_head + row;
  return {tile.first_query + at / tile.group, tile.kv_head * tile.group + at % tile.group};
}

/// Where a row lies in the query and output tensors, in rows.
KV_DEVICE std::int64_t tensor_row(const AttentionParameters& p, const QueryTile& tile,
                                  const QueryRow& row) {
  return (tile.entry * p.queries + row.query) * p.query_heads + row.head;
}

/// Positions of the rows that exist, and that the mask has columns for.
KV_DEVICE Band rows_of(const AttentionParameters& p, const EntryView& e) {
  const std::int64_t end = e.first_position + e.live;
  const bool cut = p.mask_kind != MaskKind::none && p.mask_columns < end;
  return {e.first_position, cut ? p.mask_columns : end};
}

/// Farther than any position, and far enough from the largest number to be added to one.
constexpr std::int64_t kNoLimit = std::int64_t{1} << 61;

/// What causality and windows let the query at `position` see, rows or not. It moves with the
/// position: that of the next query is the same plus 1.
template <class S>
KV_DEVICE Band sight_of(const AttentionParameters& p, std::int64_t position) {
  constexpr std::int64_t kMore = has(S::kFault, Fault::prefill_diagonal_off_by_one) ? 1 : 0;
  Band sight{-kNoLimit, kNoLimit};
  if (p.window >= 0 && p.window < kNoLimit) sight.begin = position - p.window + 1;
  if (p.right >= 0 && p.right < kNoLimit) sight.end = position + p.right + 1;
  if (p.causal && position + 1 < sight.end) sight.end = position + 1 + kMore;
  return sight;
}

template <class S>
KV_DEVICE std::int64_t position_of(const EntryView& e, std::int64_t query) {
  // Counted back from the end: right only where every query brought a token.
  if (has(S::kFault, Fault::prefill_origin_by_length)) {
    return e.first_position + e.live - e.queries + query;
  }
  return e.origin + query;
}

KV_DEVICE std::int64_t clamped(std::int64_t value, std::int64_t least, std::int64_t most) {
  return value < least ? least : value < most ? value : most;
}

/// \pre tile.rows > 0
template <class S>
KV_DEVICE KeyTiles key_tiles(const AttentionParameters& p, const EntryView& e,
                             const QueryTile& tile) {
  const std::int64_t last_query = query_row(tile, tile.rows - 1).query;
  const Band first = sight_of<S>(p, position_of<S>(e, tile.first_query));
  const Band last = sight_of<S>(p, position_of<S>(e, last_query));
  const Band rows = rows_of(p, e);
  KeyTiles keys{};
  const std::int64_t begin = first.begin < rows.begin ? rows.begin : first.begin;
  const std::int64_t end = last.end < rows.end ? last.end : rows.end;
  // What neighbours see touches, unless it is nothing.
  if (begin >= end || first.begin >= first.end) return keys;
  std::int64_t number = begin / S::kKeys;
  if (has(S::kFault, Fault::prefill_edge_tile_skipped) && begin % S::kKeys != 0) ++number;
  keys.first_position = number * S::kKeys;
  keys.count = static_cast<unsigned>((end + S::kKeys - 1) / S::kKeys - number);
  keys.head = static_cast<unsigned>(clamped(begin - keys.first_position, 0, S::kKeys));
  keys.tail = static_cast<unsigned>(end - (number + keys.count - 1) * S::kKeys);
  const std::int64_t all_begin = last.begin < rows.begin ? rows.begin : last.begin;
  const std::int64_t all_end = clamped(first.end, 0, end);
  keys.all_begin =
      static_cast<unsigned>(clamped((all_begin + S::kKeys - 1) / S::kKeys - number, 0, keys.count));
  keys.all_end = static_cast<unsigned>(clamped(all_end / S::kKeys - number, 0, keys.count));
  return keys;
}

/// What the first query of a block sees of a tile, and the rows that exist there; all relative to
/// the tile.
struct TileSight {
  int begin, end;
  int low, high;
};

template <class S>
KV_DEVICE TileSight tile_sight(const AttentionParameters& p, const EntryView& e,
                               const QueryTile& tile, std::int64_t first) {
  const Band sight = sight_of<S>(p, position_of<S>(e, tile.first_query));
  const Band rows = rows_of(p, e);
  // What is farther away than all queries of a block is so for each of them.
  constexpr std::int64_t kFar = 1 << 20;
  return {static_cast<int>(clamped(sight.begin - first, -kFar, kFar)),
          static_cast<int>(clamped(sight.end - first, -kFar, kFar)),
          static_cast<int>(clamped(rows.begin - first, 0, S::kKeys)),
          static_cast<int>(clamped(rows.end - first, 0, S::kKeys))};
}

/// Rows [low, high) of a tile.
struct RowSight {
  int low, high;
};

/// What one row of the block sees of the tile.
template <class S>
KV_DEVICE RowSight row_sight(const TileSight& sight, const QueryTile& tile, unsigned row) {
  if (row >= tile.rows) return {0, 0};
  const int later = has(S::kFault, Fault::prefill_first_querys_band)
                        ? 0
                        : static_cast<int>((tile.first_head + row) / tile.group);
  const int begin = sight.begin + later;
  const int end = sight.end + later;
  return {begin < sight.low ? sight.low : begin, end < sight.high ? end : sight.high};
}

}  // namespace prefill
}  // namespace
}  // namespace kvcheck::kernels::device
