// Limits of launches, and launches on several threads of the machine at once.
#include <cstdint>
#include <thread>

#include "tests/kernels/simt/test_launch.h"

namespace kvcheck::kernels::device {
namespace {

struct Out {
  std::uint32_t* out;
};

KV_KERNEL void count(Out p) { ++p.out[0]; }

TEST(Launch, WhatTheHardwareDoesNotTakeIsNotRun) {
  const std::pair<LaunchShape, const char*> cases[] = {
      {{.grid = {0, 1, 1}}, "grid.x is 0, the hardware takes 1 to 2147483647"},
      {{.grid = {1, 65536, 1}}, "grid.y is 65536, the hardware takes 1 to 65535"},
      {{.grid = {1, 1, 0}}, "grid.z is 0, the hardware takes 1 to 65535"},
      {{.grid = {}, .threads = 0}, "threads is 0, the hardware takes 32 to 1024"},
      {{.grid = {}, .threads = 1056}, "threads is 1056, the hardware takes 32 to 1024"},
      {{.grid = {}, .threads = 48}, "threads is 48, which is no multiple of 32"},
      {{.grid = {}, .threads = 32, .shared_bytes = 232449},
       "shared_bytes is 232449, the hardware takes 0 to 232448"}};
  for (const auto& [shape, detail] : cases) {
    simt::TestQueue test;
    std::uint32_t out[1] = {};
    launch(test.queue, count, shape, Out{out});
    const simt::Defect defect = simt::only_defect(test.queue);
    EXPECT_EQ(defect.kind, simt::DefectKind::limits);
    EXPECT_EQ(defect.detail, detail);
    EXPECT_EQ(out[0], 0U);
  }
}

TEST(Launch, WhatTheHardwareTakesIsRun) {
  for (const LaunchShape& shape :
       {LaunchShape{.grid = {3, 1, 65535}, .threads = 32, .shared_bytes = 0},
        LaunchShape{.grid = {1, 2, 1}, .threads = 1024, .shared_bytes = 232448}}) {
    simt::TestQueue test;
    std::uint32_t out[1] = {};
    launch(test.queue, count, shape, Out{out});
    EXPECT_EQ(simt::sentences_of(test.queue.take_defects()), std::vector<std::string>{});
    EXPECT_EQ(out[0], shape.grid.x * shape.grid.y * shape.grid.z * shape.threads);
  }
}

KV_KERNEL void meet_often(Out p) {
  std::uint32_t value = thread_index();
  for (int i = 0; i < 50; ++i) {
    value += shuffle_xor(kAllLanes, value, 1U << (i % 5));
    sync_block();
  }
  p.out[thread_index()] = value;
}

TEST(Launch, QueuesRunSideBySide) {
  const auto run = [](std::uint64_t seed) {
    simt::TestQueue test({simt::Order::random, seed});
    std::vector<std::uint32_t> out(128);
    for (int i = 0; i < 5; ++i) {
      launch(test.queue, meet_often, {.grid = {4, 1, 1}, .threads = 128}, Out{out.data()});
    }
    EXPECT_EQ(simt::sentences_of(test.queue.take_defects()), std::vector<std::string>{});
    EXPECT_EQ(test.queue.counters().block_barriers, 5 * 4 * 50);
    return out;
  };
  const std::vector<std::uint32_t> alone = run(1);
  std::vector<std::thread> threads;
  std::vector<std::vector<std::uint32_t>> results(4);
  for (std::size_t i = 0; i < results.size(); ++i) {
    threads.emplace_back([&, i] { results[i] = run(i); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& result : results) EXPECT_EQ(result, alone);
}

}  // namespace
}  // namespace kvcheck::kernels::device
