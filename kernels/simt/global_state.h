// What the checks keep from launch to launch, beside the bytes of global memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "kernels/simt/global_memory.h"
#include "kernels/simt/shadow.h"
#include "kernels/simt/store_log.h"

namespace kvcheck::kernels::simt {

/// Pages that hold zeros until they are touched; no store is taken for those that never are.
class ZeroPages {
 public:
  ZeroPages() = default;
  explicit ZeroPages(std::size_t bytes);
  ~ZeroPages() { release(); }
  ZeroPages(ZeroPages&& other) noexcept;
  ZeroPages& operator=(ZeroPages&& other) noexcept;
  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  void release();
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

/// Bits 0 to 3 of a mark are bytes of a word: written in this launch (output), or since
/// begin_step() (scratch), or holding a value (shared memory). Bits 4 to 7: written by an earlier
/// launch since begin_step() (output), or under way by a copy (shared memory).
using Mark = std::uint8_t;

struct Region {
  Allocation allocation;
  std::uintptr_t begin = 0;
  std::size_t bytes = 0;
  bool constant = false;  ///< Read-only data of the program, no allocation.
  ZeroPages word_pages, mark_pages;
  /// Of each byte the number of its last store in the log, 0 = none; empty where none was recorded.
  std::vector<std::uint32_t> stores;

  std::size_t words() const { return (bytes + 3) / 4; }
  /// Null for memory that is only read.
  Word* word() const { return static_cast<Word*>(word_pages.data()); }
  /// Null where nothing is kept: inputs, and what may be read and written at will.
  Mark* mark() const { return static_cast<Mark*>(mark_pages.data()); }
  bool holds(std::uintptr_t address, std::size_t count) const {
    return address - begin < bytes && count <= bytes - (address - begin);
  }
};

struct GlobalMemory::State {
  std::map<std::uintptr_t, std::unique_ptr<Region>> regions;  ///< By address of the first byte.
  std::uint32_t now = 0;                                      ///< The clock of Ordering.
  std::vector<Word> shared_words;
  std::vector<Mark> shared_marks;
  std::vector<std::unique_ptr<Region>> constants;
  std::unique_ptr<StoreLog> log;  ///< Null unless stores are recorded.

  /// A launch begins: shadows are there, and outputs count as not written by it.
  void begin_launch(std::size_t shared_bytes);
  void resize_shared(std::size_t words);
  /// The number of the last store to a byte; 0 = none is known.
  std::uint32_t last_store(std::uintptr_t address) const;
  /// The allocation that holds the byte; null where there is none.
  Region* allocation_of(std::uintptr_t address) const;
  /// The allocation or the constants that hold the byte; null where there is none.
  Region* find(std::uintptr_t address);
};

}  // namespace kvcheck::kernels::simt
