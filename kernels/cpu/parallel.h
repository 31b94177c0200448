// Independent tasks on as many threads as a session allows.
#pragma once

#include <algorithm>
#include <cstdint>

#include <tbb/info.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

namespace kvcheck::kernels {

/// Threads that a session uses; 0 = all. More than there are CPUs would only make oneTBB complain.
inline int thread_count(int threads) {
  const int most = tbb::info::default_concurrency();
  return threads == 0 ? most : std::min(threads, most);
}

/// Calls task(i) for i in [0, count). \param threads as SessionConfig::threads; with 1, or a single
/// task, the caller's thread runs them in order. The tasks must not touch what others write.
template <class Task>
void run_tasks(int threads, std::int64_t count, const Task& task) {
  const int used = thread_count(threads);
  if (used == 1 || count <= 1) {
    for (std::int64_t i = 0; i < count; ++i) task(i);
    return;
  }
  const auto all = [&] { tbb::parallel_for(std::int64_t{0}, count, task); };
  if (used == tbb::info::default_concurrency()) {
    all();
  } else {
    tbb::task_arena(used).execute(all);
  }
}

}  // namespace kvcheck::kernels
