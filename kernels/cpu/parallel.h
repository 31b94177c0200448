// Independent tasks on as many threads as a session allows.
#pragma once

#include <cstdint>

namespace kvcheck::kernels {

/// Threads that a session uses; 0 = all. More than there are CPUs would only make oneTBB complain.
int thread_count(int threads);

/// Calls call(context, i) for i in [0, count) on thread_count(threads) threads, in any order.
void run_on_threads(int threads, std::int64_t count, void (*call)(const void*, std::int64_t),
                    const void* context);

/// Calls task(i) for i in [0, count). \param threads as SessionConfig::threads; with 1, or a single
/// task, the caller's thread runs them in order. The tasks must not touch what others write.
template <class Task>
void run_tasks(int threads, std::int64_t count, const Task& task) {
  if (count <= 1 || thread_count(threads) == 1) {
    for (std::int64_t i = 0; i < count; ++i) task(i);
    return;
  }
  const auto call = [](const void* context, std::int64_t i) {
    (*static_cast<const Task*>(context))(i);
  };
  run_on_threads(threads, count, call, &task);
}

}  // namespace kvcheck::kernels
