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

/// What the query at `position` may see before the mask; empty where end <= begin.
template <class S>
KV_DEVICE Band band_of(const AttentionParameters& p, const EntryView& e, std::int64_t position) {
  constexpr std::int64_t kMore = has(S::kFault, Fault::prefill_diagonal_off_by_one) ? 1 : 0;
  Band band{e.first_position, e.first_position + e.live};
  if (p.mask_kind != MaskKind::none && p.mask_columns < band.end) band.end = p.mask_columns;
  // Compared before they are added: windows may be the largest number there is.
  const std::int64_t last = band.end - 1;
  if (p.causal && position < last) band.end = position + 1 + kMore;
  if (p.right >= 0 && position < last && p.right < last - position) {
    const std::int64_t end = position + p.right + 1;
    band.end = end < band.end ? end : band.end;
  }
  if (p.window >= 0 && p.window <= position - band.begin) band.begin = position - p.window + 1;
  return band;
}

template <class S>
KV_DEVICE std::int64_t position_of(const EntryView& e, std::int64_t query) {
  // Counted back from the end: right only where every query brought a token.
  if (has(S::kFault, Fault::prefill_origin_by_length)) {
    return e.first_position + e.live - e.queries + query;
  }
  return e.origin + query;
}

KV_DEVICE unsigned between(std::int64_t value, unsigned most) {
  return value < 0 ? 0 : value < most ? static_cast<unsigned>(value) : most;
}

/// \pre tile.rows > 0
template <class S>
KV_DEVICE KeyTiles key_tiles(const AttentionParameters& p, const EntryView& e,
                             const QueryTile& tile) {
  const Band low = band_of<S>(p, e, position_of<S>(e, tile.first_query));
  const Band high = band_of<S>(p, e, position_of<S>(e, query_row(tile, tile.rows - 1).query));
  KeyTiles keys{};
  // Begins and ends rise with the position, and neighbours' bands touch unless they are empty.
  const bool sees_nothing = p.window == 0 && (p.causal || p.right == 0);
  if (sees_nothing || high.end <= low.begin) return keys;
  std::int64_t first = low.begin / S::kKeys;
  if (has(S::kFault, Fault::prefill_edge_tile_skipped) && low.begin % S::kKeys != 0) ++first;
  keys.first_position = first * S::kKeys;
  keys.count = static_cast<unsigned>((high.end + S::kKeys - 1) / S::kKeys - first);
  keys.head = between(low.begin - keys.first_position, S::kKeys);
  keys.tail = static_cast<unsigned>(high.end - (first + keys.count - 1) * S::kKeys);
  const std::int64_t all_begin = (high.begin + S::kKeys - 1) / S::kKeys - first;
  const std::int64_t all_end = low.end <= 0 ? 0 : low.end / S::kKeys - first;
  keys.all_begin = between(all_begin, keys.count);
  keys.all_end = between(all_end, keys.count);
  return keys;
}

/// Rows of a tile from `low` up to `high` are seen.
struct TileBand {
  unsigned low, high;
};

/// What one row of the block sees of the tile that begins at `first`.
template <class S>
KV_DEVICE TileBand tile_band(const AttentionParameters& p, const EntryView& e,
                             const QueryTile& tile, unsigned row, std::int64_t first) {
  if (row >= tile.rows) return {0, 0};
  const std::int64_t query = has(S::kFault, Fault::prefill_first_querys_band)
                                 ? tile.first_query
                                 : query_row(tile, row).query;
  const Band band = band_of<S>(p, e, position_of<S>(e, query));
  return {between(band.begin - first, S::kKeys), between(band.end - first, S::kKeys)};
}

}  // namespace prefill
}  // namespace
}  // namespace kvcheck::kernels::device
