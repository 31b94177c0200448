// Independent tasks on as many threads as a session allows.
#pragma once

#include <algorithm>
#include <cstdint>

#include <tbb/info.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

namespace kvcheck::kernels {

/// Threads that a session uses; 0 = all. More than there are CPUs would only make oneTBB complain.
inline int thread_count(int threads) {
  const int most = tbb::info::default_concurrency();
  return threads == 0 ? most : std::min(threads, most);
}

#ifdef __SANITIZE_THREAD__
/// Tells the thread sanitizer what oneTBB guarantees and its library, which is not instrumented,
/// does not show: what came before a loop comes before its tasks, and these before what comes after
/// it. Tasks of one loop stay unordered, so that a race between them is found.
template <class Task>
class OrderedTask {
 public:
  explicit OrderedTask(const Task& task) : task_(task) { __tsan_release(this); }
  void join() { __tsan_acquire(&joined_); }
  void run(std::int64_t i) {
    __tsan_acquire(this);
    task_(i);
    __tsan_release(&joined_);
  }

 private:
  const Task& task_;
  char joined_ = 0;
};

/// Copies of it go through oneTBB unseen, so reading them must not be seen either.
template <class Task>
struct OrderedCall {
  OrderedTask<Task>* task;
  __attribute__((no_sanitize_thread)) void operator()(std::int64_t i) const { task->run(i); }
};
#endif

/// tbb::parallel_for.
template <class Task>
void for_each_task(std::int64_t count, const Task& task) {
#ifdef __SANITIZE_THREAD__
  OrderedTask<Task> ordered(task);
  tbb::parallel_for(std::int64_t{0}, count, OrderedCall<Task>{&ordered});
  ordered.join();
#else
  tbb::parallel_for(std::int64_t{0}, count, task);
#endif
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
  if (used == tbb::info::default_concurrency()) {
    for_each_task(count, task);
  } else {
    tbb::task_arena(used).execute([&] { for_each_task(count, task); });
  }
}

}  // namespace kvcheck::kernels
