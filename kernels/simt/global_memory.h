// Global memory of the runtime: allocations with red zones, and what may be done with each.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "kernels/simt/defect.h"
#include "kernels/simt/store_log.h"

namespace kvcheck::kernels::simt {

/// What kernels may do with an allocation.
enum class Use {
  input,      ///< Read only.
  output,     ///< Bytes that a launch writes are written once by it.
  scratch,    ///< Written before it is read, within the launches since begin_step().
  read_write  ///< Anything: the cache.
};

struct Allocation {
  std::byte* data = nullptr;
  std::size_t bytes = 0;
  Use use = Use::read_write;
  std::string name;  ///< "key cache"; defects call it so.
};

class GlobalMemory {
 public:
  GlobalMemory();
  ~GlobalMemory();
  GlobalMemory(const GlobalMemory&) = delete;
  GlobalMemory& operator=(const GlobalMemory&) = delete;

  /// Filled with bytes of signalling NaN; 256 bytes before and behind it belong to nobody.
  /// Aligned to 256 bytes.
  std::byte* allocate(std::size_t bytes, Use use, std::string name);
  void release(std::byte* data);

  /// Scratch and outputs hold nothing again: a step begins, of one launch or several.
  void begin_step();
  /// The first byte of [begin, begin + bytes), all of one output, that no launch has written since
  /// begin_step(). Rows that a step must leave alone are not asked for.
  std::optional<Defect> check_written(const void* begin, std::size_t bytes) const;

  /// From now on the last store to each byte is kept for as long as its allocation lives, of
  /// launches under Checks::memory. Takes 4 bytes for each byte, and time for each store.
  void record_stores();
  /// The store of a kernel that left the byte as it is; empty where none did since record_stores(),
  /// or the host has written the byte since.
  std::optional<LastStore> last_store(const void* address) const;
  /// In words: "stored at kernels/cuda/merge.cuh:80 by ...", or "stored by no kernel". Where the
  /// thread had read scratch memory, which is where its numbers come from: "..., after it had read
  /// what was stored at ...".
  std::string last_store_words(const void* address) const;
  /// The host has written these bytes, all of one allocation.
  void forget_stores(const void* begin, std::size_t bytes);

  /// The allocation that holds the byte; null where none does.
  const Allocation* find(const void* address) const;
  /// The nearest one, for the words of a defect; null where there is none at all.
  const Allocation* nearest(const void* address) const;

  /// What the checks remember; one launch at a time uses it.
  struct State;
  State& state() { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

}  // namespace kvcheck::kernels::simt
