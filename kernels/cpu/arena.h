// A block of zero-filled memory, on a cache line and on huge pages where it is large.
#pragma once

#include <cstddef>

namespace kvcheck::kernels {

/// Owns its bytes; moves, but does not copy.
class Arena {
 public:
  static constexpr std::size_t kAlignment = 64;
  /// As any object of the language needs it.
  static constexpr std::size_t kUnaligned = alignof(std::max_align_t);
  /// From this size on the memory comes from mmap: its pages arrive as zeros when first touched.
  static constexpr std::size_t kMapped = std::size_t{128} << 10;
  /// From this size on the kernel is asked for huge pages, and the block begins on one.
  static constexpr std::size_t kHugePage = std::size_t{2} << 20;

  Arena() = default;
  /// \param alignment of blocks below kMapped, where others begin on a page: kAlignment, or
  /// kUnaligned, which the heap finds faster. \throws std::bad_alloc
  explicit Arena(std::size_t bytes, std::size_t alignment = kAlignment);
  Arena(Arena&& other) noexcept;
  Arena& operator=(Arena&& other) noexcept;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena();

  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  /// Bytes that were asked for.
  std::size_t size() const { return size_; }

 private:
  void release();

  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  bool aligned_ = true;
  void* mapping_ = nullptr;  // What munmap gets; nullptr = not mapped.
  std::size_t mapping_size_ = 0;
};

}  // namespace kvcheck::kernels
