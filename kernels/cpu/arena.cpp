// Memory from the heap or from mmap.
#include "kernels/cpu/arena.h"

#include <cstdint>
#include <cstring>
#include <new>
#include <utility>

#include <sys/mman.h>

namespace kvcheck::kernels {

Arena::Arena(std::size_t bytes, std::size_t alignment)
    : size_(bytes), aligned_(alignment > kUnaligned) {
  if (bytes == 0) return;
  if (bytes < kMapped) {
    data_ = static_cast<std::byte*>(aligned_ ? ::operator new (bytes, std::align_val_t{kAlignment})
                                             : ::operator new(bytes));
    std::memset(data_, 0, bytes);
    return;
  }
  // Room to begin on a huge page: mmap itself promises a small one.
  const std::size_t slack = bytes >= kHugePage ? kHugePage : 0;
  if (bytes > SIZE_MAX - slack) throw std::bad_alloc();
  mapping_size_ = bytes + slack;
  void* const mapping =
      ::mmap(nullptr, mapping_size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) throw std::bad_alloc();
  mapping_ = mapping;
  data_ = static_cast<std::byte*>(mapping);
  if (slack == 0) return;
  const auto address = reinterpret_cast<std::uintptr_t>(mapping);
  data_ += (kHugePage - address % kHugePage) % kHugePage;
  // A kernel without huge pages refuses the advice, which costs nothing but speed.
  (void)::madvise(data_, bytes, MADV_HUGEPAGE);
}

Arena::Arena(Arena&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      aligned_(other.aligned_),
      mapping_(std::exchange(other.mapping_, nullptr)),
      mapping_size_(std::exchange(other.mapping_size_, 0)) {}

Arena& Arena::operator=(Arena&& other) noexcept {
  if (this == &other) return *this;
  release();
  data_ = std::exchange(other.data_, nullptr);
  size_ = std::exchange(other.size_, 0);
  aligned_ = other.aligned_;
  mapping_ = std::exchange(other.mapping_, nullptr);
  mapping_size_ = std::exchange(other.mapping_size_, 0);
  return *this;
}

Arena::~Arena() { release(); }

void Arena::release() {
  if (mapping_ != nullptr) {
    ::munmap(mapping_, mapping_size_);
  } else if (aligned_) {
    ::operator delete (data_, std::align_val_t{kAlignment});
  } else {
    ::operator delete(data_);
  }
}

}  // namespace kvcheck::kernels
