// What one pass over a chunk of keys needs and gives: the seam between planning and arithmetic.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kvcheck::kernels::flash {

/// Keys of one tile; tiles begin at multiples of it in absolute positions.
inline constexpr std::int64_t kTile = 64;
/// Keys whose partial result is kept apart until the merge; a multiple of the tile.
inline constexpr std::int64_t kChunk = 512;
/// Lanes in which the weights of a row are summed: lane = position mod 16.
inline constexpr std::int64_t kSumLanes = 16;

/// What an additive mask says of one row of queries; positions are absolute.
class TileBias {
 public:
  virtual ~TileBias() = default;
  /// bias[i] of position first + i for `count` positions; -infinity hides a key.
  virtual void fill(std::int64_t row, std::int64_t first, std::int64_t count,
                    float* bias) const = 0;
};

/// Takes the logits of tiles in place of the attention over them.
class TileSink {
 public:
  virtual ~TileSink() = default;
  /// dots[r * kTile + i] is the product of row r and position `first` + i, where bit i of
  /// visible[r] is set.
  virtual void take(std::int64_t first, const float* dots, const std::uint64_t* visible) = 0;
};

/// The rows of keys and values that one KV head of one entry holds.
struct StoredRows {
  const std::byte* key = nullptr;  ///< Row of `first_position`.
  const std::byte* value = nullptr;
  std::int64_t key_row_bytes = 0, value_row_bytes = 0;
  std::int64_t first_position = 0;
  std::int64_t end_position = 0;  ///< One after the last live row.
};

/// Sums over some of the keys, for a block of query rows.
struct Partial {
  float* maximum = nullptr;  ///< [rows] largest logit; -infinity = no key.
  float* sums = nullptr;     ///< [rows][kSumLanes] of exp(logit - maximum).
  float* output = nullptr;   ///< [rows][output lanes] of exp(logit - maximum) * value.
};

/// One block of query rows that share a KV head, against the keys in [chunk_begin, chunk_end).
struct ChunkTask {
  StoredRows stored;
  std::int64_t head_size = 0, value_head_size = 0;
  std::int64_t rows = 0;  ///< Query rows; padded to an even number in the arrays.
  /// [rows][query_stride], f32, times the scale of the logits; zero beyond head_size up to the next
  /// multiple of 8.
  const float* query = nullptr;
  std::int64_t query_stride = 0;
  /// Positions [begin[r], end[r]) that row r may see, before the bias.
  const std::int64_t* begin = nullptr;
  const std::int64_t* end = nullptr;
  const TileBias* bias = nullptr;
  float softcap = 0;  ///< 0 = off.
  std::int64_t chunk_begin = 0, chunk_end = 0;
  std::int64_t output_lanes = 0;  ///< At least value_head_size, a multiple of 16.

  Partial partial;
  TileSink* sink = nullptr;  ///< Where it is set, only products are computed and given to it.
};

/// Room for one tile at a time, one for each thread. All f32, 64-byte aligned.
struct TileScratch {
  float* logits = nullptr;           ///< [rows][kTile]
  std::uint64_t* visible = nullptr;  ///< [rows], bit i = key i of the tile
  float* keys = nullptr;             ///< [kTile][head_size rounded up to 8], packed by blocks
  float* values = nullptr;           ///< [kTile][output_lanes]
};

}  // namespace kvcheck::kernels::flash
