// What happens before each access of the running thread.
#include "kernels/simt/thread.h"

namespace kvcheck::kernels::simt {

constinit thread_local Running running;

void note_access(const Access& access) {
  Thread* const thread = running.thread;
  if (thread == nullptr) return;
  const auto* const address = static_cast<const std::byte*>(access.address);
  if (address >= thread->stack_begin && address < thread->stack_end) return;
  maybe_yield();
  if (thread->monitor == nullptr) return;
  // The checks use templates of the standard library, of which an instrumented copy may be linked.
  running.thread = nullptr;
  const bool allowed = thread->monitor->access(thread->index, access);
  running.thread = thread;
  if (!allowed) running.give_up();
}

}  // namespace kvcheck::kernels::simt
