// Ordered work: many threads compute the results of items, one consumes them in the items' order.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace kvcheck::properties {

/// Results that wait for an earlier one, at most: a slow consumer stops the workers here.
inline constexpr std::size_t kMostWaiting = 512;

/// Calls `work(worker, item)` for each item of [first, last) on `workers` threads and
/// `consume(item, result)` on the calling one, in ascending order whatever finishes first. Ends
/// early once `stop()` is true: no further item is taken, and those taken are consumed. `idle()` is
/// called on the calling thread while it waits. One worker works on the calling thread. What `work`
/// throws reaches the caller when its item is due.
template <class Work, class Consume, class Stop, class Idle>
void in_order(std::size_t workers, std::uint64_t first, std::uint64_t last, const Work& work,
              const Consume& consume, const Stop& stop, const Idle& idle) {
  if (workers <= 1) {
    for (std::uint64_t item = first; item < last && !stop(); ++item) {
      consume(item, work(0, item));
      idle();
    }
    return;
  }
  using Result = decltype(work(std::size_t{}, std::uint64_t{}));
  struct Slot {
    std::optional<Result> result;
    std::exception_ptr error;
  };
  std::mutex mutex;
  std::condition_variable arrived, taken;
  std::map<std::uint64_t, Slot> waiting;
  std::uint64_t next = first, due = first;
  std::size_t running = workers;
  bool abandoned = false;

  const auto run = [&](std::size_t worker) {
    for (;;) {
      std::uint64_t item = 0;
      {
        std::unique_lock lock(mutex);
        taken.wait(lock, [&] { return abandoned || waiting.size() < kMostWaiting || next == due; });
        if (abandoned || next >= last || stop()) break;
        item = next++;
      }
      Slot slot;
      try {
        slot.result.emplace(work(worker, item));
      } catch (...) {
        slot.error = std::current_exception();
      }
      const std::scoped_lock lock(mutex);
      waiting.emplace(item, std::move(slot));
      arrived.notify_one();
    }
    const std::scoped_lock lock(mutex);
    --running;
    arrived.notify_one();
  };

  // Destroyed first: joins whatever way this function is left.
  struct Threads {
    std::vector<std::jthread> list;
    std::mutex& mutex;
    std::condition_variable& taken;
    bool& abandoned;
    ~Threads() {
      {
        const std::scoped_lock lock(mutex);
        abandoned = true;
      }
      taken.notify_all();
    }
  } threads{{}, mutex, taken, abandoned};
  for (std::size_t worker = 0; worker < workers; ++worker) threads.list.emplace_back(run, worker);

  for (;;) {
    typename std::map<std::uint64_t, Slot>::node_type node;
    {
      std::unique_lock lock(mutex);
      arrived.wait_for(lock, std::chrono::milliseconds(100), [&] {
        return (!waiting.empty() && waiting.begin()->first == due) ||
               (running == 0 && waiting.empty());
      });
      if (!waiting.empty() && waiting.begin()->first == due) {
        node = waiting.extract(waiting.begin());
        ++due;
      } else if (running == 0 && waiting.empty()) {
        return;
      }
    }
    taken.notify_all();
    if (!node.empty()) {
      if (node.mapped().error) std::rethrow_exception(node.mapped().error);
      consume(node.key(), std::move(*node.mapped().result));
    }
    idle();
  }
}

}  // namespace kvcheck::properties
