// Rows of keys or values, moved as raw bytes.
#include "kernels/cpu/row_store.h"

#include <algorithm>
#include <cstring>

namespace kvcheck::kernels {
namespace {

/// Bytes from which on rows begin on a cache line. Few rows are read so fast that it does not pay.
constexpr std::size_t kAlignedFrom = std::size_t{4} << 10;

/// Fills `memory` with `element` again and again, in copies that double in size.
void repeat(std::span<const std::byte> element, std::span<std::byte> memory) {
  if (memory.empty()) return;
  std::memcpy(memory.data(), element.data(), element.size());
  for (std::size_t filled = element.size(); filled < memory.size();) {
    const std::size_t count = std::min(filled, memory.size() - filled);
    std::memcpy(memory.data() + filled, memory.data(), count);
    filled += count;
  }
}

}  // namespace

void RowView::copy_rows(const RowView& source, std::int64_t head, std::int64_t from,
                        std::int64_t to, std::int64_t count) const {
  if (count <= 0) return;
  std::memmove(row(head, to), source.row(head, from), static_cast<std::size_t>(count * row_stride));
}

RowStore::RowStore(std::int64_t entries, std::int64_t heads, std::int64_t rows,
                   std::int64_t row_bytes) {
  reshape(entries, heads, rows, row_bytes);
}

void RowStore::reshape(std::int64_t entries, std::int64_t heads, std::int64_t rows,
                       std::int64_t row_bytes) {
  entries_ = entries;
  heads_ = heads;
  rows_ = rows;
  row_bytes_ = row_bytes;
  const auto wanted = static_cast<std::size_t>(bytes());
  // A buffer that grows by a token a step is not allocated afresh in each.
  if (wanted <= arena_.size()) return;
  arena_ = Arena(arena_.size() == 0 ? wanted : wanted + wanted / 2,
                 wanted < kAlignedFrom ? Arena::kUnaligned : Arena::kAlignment);
}

void RowStore::fill_rows(std::int64_t entry_index, std::int64_t first,
                         std::span<const std::byte> element) {
  if (first >= rows_) return;
  const RowView view = entry(entry_index);
  const std::span<std::byte> rows{view.row(0, first), view.row(0, rows_)};
  repeat(element, rows);
  for (std::int64_t head = 1; head < heads_; ++head) {
    std::memcpy(view.row(head, first), rows.data(), rows.size());
  }
}

void RowStore::clear_rows(std::int64_t entry_index, std::int64_t first) {
  if (first >= rows_) return;
  const RowView view = entry(entry_index);
  for (std::int64_t head = 0; head < heads_; ++head) {
    std::memset(view.row(head, first), 0, static_cast<std::size_t>((rows_ - first) * row_bytes_));
  }
}

void RowStore::assign(std::span<const std::byte> bytes) {
  if (!bytes.empty()) std::memcpy(arena_.data(), bytes.data(), bytes.size());
}

Tensor RowStore::tensor(ElementType type, std::int64_t width) const {
  Tensor tensor{type, {entries_, heads_, rows_, width}, {}};
  tensor.bytes.assign(arena_.data(), arena_.data() + bytes());
  return tensor;
}

}  // namespace kvcheck::kernels
