// Rows of keys or values: a [B,Nk,R,H] tensor whose rows are moved as raw bytes.
#pragma once

#include <cstdint>

#include "kernels/target.h"

namespace kvcheck::kernels {

class RowStore {
 public:
  RowStore() = default;
  /// Zero-filled. \throws std::length_error above 2 GiB
  RowStore(ElementType type, std::int64_t entries, std::int64_t heads, std::int64_t rows,
           std::int64_t width);
  /// \pre the shape has four extents and the bytes fit it
  explicit RowStore(Tensor tensor) : tensor_(std::move(tensor)) {}

  std::int64_t entries() const { return tensor_.shape[0]; }
  std::int64_t heads() const { return tensor_.shape[1]; }
  std::int64_t rows() const { return tensor_.shape[2]; }
  std::int64_t width() const { return tensor_.shape[3]; }
  ElementType type() const { return tensor_.type; }
  const Tensor& tensor() const { return tensor_; }

  std::byte* row(std::int64_t entry, std::int64_t head, std::int64_t row);
  const std::byte* row(std::int64_t entry, std::int64_t head, std::int64_t row) const;
  std::size_t row_bytes() const;

  /// Copies rows [from, from + count) of every head of `source_entry` to rows [to, ...) of
  /// `entry`; the two ranges may overlap.
  void copy_rows(const RowStore& source, std::int64_t source_entry, std::int64_t from,
                 std::int64_t entry, std::int64_t to, std::int64_t count);

  /// Overwrites rows [first, rows()) of every head of `entry`.
  void fill_rows(std::int64_t entry, std::int64_t first, double value);

 private:
  std::size_t offset(std::int64_t entry, std::int64_t head, std::int64_t row) const;

  Tensor tensor_{ElementType::f32, {0, 0, 0, 0}, {}};
};

/// Keys and values that share their rows.
struct KeyValueRows {
  RowStore key, value;
  std::int64_t rows() const { return key.rows(); }
};

}  // namespace kvcheck::kernels
