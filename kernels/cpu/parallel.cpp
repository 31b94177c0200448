// Tasks on the threads of oneTBB.
//
// For the thread sanitizer this file is built without it, for oneTBB's library is not instrumented:
// what its templates pass through it would look like a race. What oneTBB guarantees is stated in
// its place: what is before a loop comes before its tasks, and these before what follows it. Tasks
// of one loop stay unordered, so that a race between them is found.
#include "kernels/cpu/parallel.h"

#include <algorithm>

#include <tbb/info.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#ifdef KVCHECK_STATES_TASK_ORDER
#include <sanitizer/tsan_interface.h>
#endif

namespace kvcheck::kernels {
namespace {

void comes_before([[maybe_unused]] void* point) {
#ifdef KVCHECK_STATES_TASK_ORDER
  __tsan_release(point);
#endif
}

void comes_after([[maybe_unused]] void* point) {
#ifdef KVCHECK_STATES_TASK_ORDER
  __tsan_acquire(point);
#endif
}

}  // namespace

int thread_count(int threads) {
  const int most = tbb::info::default_concurrency();
  return threads == 0 ? most : std::min(threads, most);
}

void run_on_threads(int threads, std::int64_t count, void (*call)(const void*, std::int64_t),
                    const void* context) {
  char begun = 0, ended = 0;
  comes_before(&begun);
  const auto all = [&] {
    tbb::parallel_for(std::int64_t{0}, count, [&](std::int64_t i) {
      comes_after(&begun);
      call(context, i);
      comes_before(&ended);
    });
  };
  const int used = thread_count(threads);
  if (used == tbb::info::default_concurrency()) {
    all();
  } else {
    tbb::task_arena(used).execute(all);
  }
  comes_after(&ended);
}

}  // namespace kvcheck::kernels
