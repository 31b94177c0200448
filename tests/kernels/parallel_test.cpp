// Tasks on several threads: each once, in order where there is one thread, and seen when it ends.
#include "kernels/cpu/parallel.h"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace kvcheck::kernels {
namespace {

TEST(Threads, AreAtMostThoseOfTheMachine) {
  const int all = thread_count(0);
  EXPECT_GE(all, 1);
  EXPECT_EQ(thread_count(1), 1);
  EXPECT_EQ(thread_count(all), all);
  EXPECT_EQ(thread_count(all + 7), all);
}

TEST(Tasks, EachRunsOnceAndItsWritesAreSeen) {
  for (const int threads : {0, 1, 2, 3, 8}) {
    for (const std::int64_t count : {0, 1, 2, 7, 1000}) {
      std::vector<int> runs(static_cast<std::size_t>(count), 0);  // No atomics: tasks are apart.
      int shared = 3;
      run_tasks(threads, count,
                [&](std::int64_t i) { runs[static_cast<std::size_t>(i)] += shared - 2; });
      shared = 9;
      EXPECT_EQ(std::count(runs.begin(), runs.end(), 1), count) << threads << ' ' << count;
    }
  }
}

TEST(Tasks, OfOneThreadRunInOrderOnTheCallersThread) {
  const auto caller = std::this_thread::get_id();
  std::vector<std::int64_t> order, expected(50);
  std::iota(expected.begin(), expected.end(), 0);
  run_tasks(1, 50, [&](std::int64_t i) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    order.push_back(i);
  });
  EXPECT_EQ(order, expected);
  run_tasks(0, 1, [&](std::int64_t) { EXPECT_EQ(std::this_thread::get_id(), caller); });
}

TEST(Tasks, MayStartTasksOfTheirOwn) {
  std::atomic<int> runs = 0;
  run_tasks(0, 4, [&](std::int64_t) { run_tasks(0, 5, [&](std::int64_t) { ++runs; }); });
  EXPECT_EQ(runs, 20);
}

}  // namespace
}  // namespace kvcheck::kernels
