// The running thread of a kernel: the seam between the scheduler, which sets it at every switch,
// and whatever runs on the thread's behalf: the hooks of the instrumentation and the vocabulary.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/simt/monitor.h"

namespace kvcheck::kernels::simt {

/// One thread of the block that is under way.
struct Thread {
  Monitor* monitor = nullptr;  ///< Null in a launch without checks.
  std::int64_t block = 0;
  int index = 0;  ///< Within the block.
  int warp = 0, lane = 0;
  const std::byte* stack_begin = nullptr;  ///< Of its fiber; its own accesses there are ignored.
  const std::byte* stack_end = nullptr;
};

/// One for each OS thread; fibers stay on theirs.
struct Running {
  Thread* thread = nullptr;  ///< Null while no kernel thread runs: accesses are nobody's then.
  std::uint32_t accesses_until_yield = 0;  ///< 0 = no preemption.
  void (*yield)() = nullptr;               ///< Lets others run, and sets accesses_until_yield anew.
  void (*give_up)() = nullptr;             ///< Ends the launch: leaves the thread for good.
};
extern constinit thread_local Running running;

/// Before each access to memory: another thread may come first.
inline void maybe_yield() {
  if (running.accesses_until_yield != 0 && --running.accesses_until_yield == 0) running.yield();
}

/// One access of the running thread, about to be made: preemption, the checks of its monitor, and
/// the end of the launch where going on would touch foreign memory. Nothing where no thread runs.
/// Operations that touch memory from uninstrumented code call it, with the place of the call in
/// `site` and their own return address in `code`, which tells apart calls in one line.
void note_access(const Access& access);

/// While it lives, accesses of instrumented code are the runtime's own.
class RuntimeScope {
 public:
  RuntimeScope() : thread_(running.thread) { running.thread = nullptr; }
  ~RuntimeScope() { running.thread = thread_; }
  RuntimeScope(const RuntimeScope&) = delete;
  RuntimeScope& operator=(const RuntimeScope&) = delete;

 private:
  Thread* thread_;
};

}  // namespace kvcheck::kernels::simt
