// Every index once, whatever the number of workers; errors and interruption end them all.
#include "properties/sweep/workers.h"

#include <map>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>

#include <gtest/gtest.h>

#include "kernels/cpu/naive/cpu_naive.h"
#include "tests/properties/sweep/sub_grid.h"

namespace kvcheck::properties {
namespace {

TargetPointer naive() { return kernels::make_cpu_naive(); }

TEST(Workers, EveryIndexIsWorkedOnOnce) {
  for (const int count : {1, 3}) {
    Workers workers = workers_of(count, naive);
    std::vector<std::atomic<int>> times(1000);
    workers.run(1000,
                [&](WorkerTargets&, std::int64_t i) { ++times[static_cast<std::size_t>(i)]; });
    for (const auto& n : times) EXPECT_EQ(n, 1);
  }
}

TEST(Workers, EachHasItsOwnTarget) {
  Workers workers = workers_of(2, naive);
  std::mutex mutex;
  std::map<std::thread::id, std::set<kernels::Target*>> used;
  workers.run(2000, [&](WorkerTargets& targets, std::int64_t) {
    const std::lock_guard lock(mutex);
    used[std::this_thread::get_id()].insert(targets.target.get());
  });
  std::set<kernels::Target*> all;
  for (const auto& [thread, targets] : used) {
    EXPECT_EQ(targets.size(), 1u);
    all.insert(targets.begin(), targets.end());
  }
  EXPECT_EQ(all.size(), used.size());
}

TEST(Workers, AnErrorOfTheWorkComesOut) {
  Workers workers = workers_of(2, naive);
  EXPECT_THROW(workers.run(1000,
                           [](WorkerTargets&, std::int64_t i) {
                             if (i == 500) throw std::runtime_error("broken");
                           }),
               std::runtime_error);
}

TEST(Workers, InterruptionEndsThemEarly) {
  std::atomic<bool> interrupted{false};
  Workers workers = workers_of(1, naive, nullptr, &interrupted);
  std::int64_t done = 0;
  workers.run(1000, [&](WorkerTargets&, std::int64_t i) {
    ++done;
    if (i == 99) interrupted = true;
  });
  EXPECT_EQ(done, 100);
  EXPECT_TRUE(workers.interrupted());
}

}  // namespace
}  // namespace kvcheck::properties
