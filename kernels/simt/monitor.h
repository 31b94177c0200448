// Watches what the threads of one launch do to memory: the seam between the scheduler, which says
// when threads are ordered, and the checks, which say what was wrong. One OS thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/cuda/element.h"
#include "kernels/simt/counters.h"
#include "kernels/simt/defect.h"
#include "kernels/simt/global_memory.h"
#include "kernels/simt/site.h"

namespace kvcheck::kernels::simt {

/// Which checks a launch runs under.
struct Checks {
  bool memory = true;    ///< Bounds, alignment, races, uninitialised reads, write-once.
  bool counters = true;  ///< Bank conflicts and sectors; outside `memory` they cost nothing.
  std::size_t most_defects = 16;
};

/// Shared bytes that one asynchronous copy fills.
inline constexpr std::size_t kCopyBytes = 16;

/// One access of one thread. `code` is the return address of the call that stands for it; `site`,
/// where it is known, is what defects show.
struct Access {
  const void* address = nullptr;
  std::size_t bytes = 0;
  bool write = false;
  bool atomic = false;     ///< Reads too where it writes.
  bool unaligned = false;  ///< Any address will do: bytes are copied one by one.
  std::uintptr_t code = 0;
  Site site;
};

class Monitor {
 public:
  Monitor(const Checks& checks, const device::LaunchShape& shape, GlobalMemory& memory);
  ~Monitor();

  /// A block begins: its shared memory holds nothing yet.
  void begin_block(std::int64_t block, std::span<std::byte> shared);
  void end_block();
  /// Every live thread of the block has arrived; what they did before is done for all of them.
  void block_barrier();
  /// The same for the lanes of a warp.
  void warp_barrier(int warp, std::uint32_t lanes);

  /// \return false where the bytes are nobody's: the access must not be made, the launch ends
  bool access(int thread, const Access& access);
  /// cp.async: kCopyBytes of `shared` are under way from now on, `bytes` (0 to 16) of them read
  /// from `global`; `code` and `site` as in Access. \return as access()
  bool copy_begins(int thread, const void* shared, const void* global, std::size_t bytes,
                   std::uintptr_t code, Site site);
  /// ... until the thread that asked for them has waited; then they count as written by it.
  void copy_ends(int thread, const void* shared);

  /// One mma of a warp, for the counters.
  void count_matrix_product();

  /// Reports something that the scheduler found.
  void report(Defect defect);

  /// Checks what can only be told at the end. \return everything found, places resolved
  std::vector<Defect> finish();
  const Counters& counters() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kvcheck::kernels::simt
