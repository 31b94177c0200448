// Threads that take runs of neighbouring indices.
#include "properties/sweep/workers.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

namespace kvcheck::properties {
namespace {

/// Indices taken at once: neighbours share graphs of a foreign target.
constexpr std::int64_t kRun = 64;
constexpr auto kWatchPause = std::chrono::milliseconds(100);

}  // namespace

void Workers::run(std::int64_t count, const std::function<void(WorkerTargets&, std::int64_t)>& work,
                  const std::function<void(std::int64_t)>& watch) {
  std::atomic<std::int64_t> next{0}, done{0};
  std::atomic<bool> failed{false};
  std::exception_ptr error;
  std::mutex mutex;
  std::condition_variable ended;
  std::size_t running = targets_.size();
  const auto work_on = [&](WorkerTargets& targets) {
    try {
      for (std::int64_t first = next.fetch_add(kRun); first < count && !failed;
           first = next.fetch_add(kRun)) {
        for (std::int64_t i = first; i < std::min(count, first + kRun); ++i) {
          if (interrupted() || failed) break;
          work(targets, i);
          ++done;
        }
        if (interrupted()) break;
      }
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
      failed = true;
    }
    const std::lock_guard lock(mutex);
    --running;
    ended.notify_all();
  };
  {
    std::vector<std::jthread> threads;
    for (WorkerTargets& targets : targets_) threads.emplace_back([&] { work_on(targets); });
    std::unique_lock lock(mutex);
    while (!ended.wait_for(lock, kWatchPause, [&] { return running == 0; })) {
      lock.unlock();
      if (watch) watch(done);
      lock.lock();
    }
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace kvcheck::properties
