// Rows of keys or values as raw bytes: a tensor [B,Nk,R,row_bytes], and views of one entry of it.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/cpu/arena.h"
#include "kernels/target.h"

namespace kvcheck::kernels {

/// Rows of all KV heads of one entry: row r of head n begins at base + n * head_stride +
/// r * row_stride. Strides in bytes; rows lie next to each other.
struct RowView {
  std::byte* base = nullptr;
  std::int64_t head_stride = 0;
  std::int64_t row_stride = 0;

  std::byte* row(std::int64_t head, std::int64_t row) const {
    return base + head * head_stride + row * row_stride;
  }
  /// Copies rows [from, from + count) of one head of `source` to rows [to, ...); the two ranges may
  /// overlap. \pre rows of both are equally long
  void copy_rows(const RowView& source, std::int64_t head, std::int64_t from, std::int64_t to,
                 std::int64_t count) const;
};

class RowStore {
 public:
  RowStore() = default;
  /// Zero-filled. \pre the byte count fits 2 GiB
  RowStore(std::int64_t entries, std::int64_t heads, std::int64_t rows, std::int64_t row_bytes);

  /// Takes another shape. Memory that is large enough is used again as it is, else the new memory
  /// is zero-filled.
  void reshape(std::int64_t entries, std::int64_t heads, std::int64_t rows, std::int64_t row_bytes);

  std::int64_t rows() const { return rows_; }
  std::int64_t row_bytes() const { return row_bytes_; }
  /// Bytes of all rows.
  std::int64_t bytes() const { return entries_ * heads_ * rows_ * row_bytes_; }
  /// Bytes of the memory behind them.
  std::size_t reserved() const { return arena_.size(); }

  RowView entry(std::int64_t entry) {
    return {arena_.data() + entry * heads_ * rows_ * row_bytes_, rows_ * row_bytes_, row_bytes_};
  }

  /// Overwrites rows [first, rows()) of every head of `entry` with `element` again and again.
  /// \pre row_bytes() is a multiple of the element's size
  void fill_rows(std::int64_t entry, std::int64_t first, std::span<const std::byte> element);

  /// Zeros rows [first, rows()) of every head of `entry`.
  void clear_rows(std::int64_t entry, std::int64_t first);

  /// \pre `bytes` has bytes() bytes
  void assign(std::span<const std::byte> bytes);
  /// A copy as [B,Nk,R,width]. \pre row_bytes() is that of `width` elements
  Tensor tensor(ElementType type, std::int64_t width) const;

 private:
  Arena arena_;
  std::int64_t entries_ = 0, heads_ = 0, rows_ = 0, row_bytes_ = 0;
};

/// Keys and values that share their rows.
struct KeyValueRows {
  RowStore key, value;
  std::int64_t rows() const { return key.rows(); }
};

/// Rows that a step appends, wherever they lie: that of entry b, token t and head n begins at
/// base + b * entry_stride + t * token_stride + n * head_stride. Strides in bytes.
struct RowSource {
  const std::byte* base = nullptr;
  std::int64_t entry_stride = 0, token_stride = 0, head_stride = 0;

  /// Dense [B,N,Nk,row_bytes].
  static RowSource dense(const std::byte* base, std::int64_t tokens, std::int64_t heads,
                         std::int64_t row_bytes) {
    return {base, tokens * heads * row_bytes, heads * row_bytes, row_bytes};
  }
  const std::byte* row(std::int64_t entry, std::int64_t token, std::int64_t head) const {
    return base + entry * entry_stride + token * token_stride + head * head_stride;
  }
};

/// Keys and values of a step as the cache stores them.
struct NewRows {
  RowSource key, value;
};

}  // namespace kvcheck::kernels
