// Rows of keys or values, moved as raw bytes.
#include "kernels/cpu/row_store.h"

#include <array>
#include <cstring>

#include "kernels/cpu/element.h"

namespace kvcheck::kernels {

RowStore::RowStore(ElementType type, std::int64_t entries, std::int64_t heads, std::int64_t rows,
                   std::int64_t width)
    : tensor_(Tensor::zeros(type, {entries, heads, rows, width})) {}

std::size_t RowStore::row_bytes() const {
  return static_cast<std::size_t>(width()) * element_bytes(type());
}

std::size_t RowStore::offset(std::int64_t entry, std::int64_t head, std::int64_t row) const {
  return static_cast<std::size_t>((entry * heads() + head) * rows() + row) * row_bytes();
}

std::byte* RowStore::row(std::int64_t entry, std::int64_t head, std::int64_t row) {
  return tensor_.bytes.data() + offset(entry, head, row);
}

const std::byte* RowStore::row(std::int64_t entry, std::int64_t head, std::int64_t row) const {
  return tensor_.bytes.data() + offset(entry, head, row);
}

void RowStore::copy_rows(const RowStore& source, std::int64_t source_entry, std::int64_t from,
                         std::int64_t entry, std::int64_t to, std::int64_t count) {
  if (count <= 0) return;
  for (std::int64_t head = 0; head < heads(); ++head) {
    std::memmove(row(entry, head, to), source.row(source_entry, head, from),
                 static_cast<std::size_t>(count) * row_bytes());
  }
}

void RowStore::fill_rows(std::int64_t entry, std::int64_t first, double value) {
  std::array<std::byte, 8> element{};
  encode_element(type(), value, element.data());
  const std::size_t size = element_bytes(type());
  for (std::int64_t head = 0; head < heads(); ++head) {
    std::byte* const end = row(entry, head, 0) + static_cast<std::size_t>(rows()) * row_bytes();
    for (std::byte* at = row(entry, head, first); at < end; at += size) {
      std::memcpy(at, element.data(), size);
    }
  }
}

}  // namespace kvcheck::kernels
