// Blocks, barriers, exceptions: the life of the threads of a launch.
#include <cstdint>
#include <set>
#include <stdexcept>

#include "tests/kernels/simt/test_launch.h"

namespace kvcheck::kernels::device {
namespace {

constexpr const char* kFile = "tests/kernels/simt/runner_test.cpp";

struct Out {
  std::uint32_t* out;
};

KV_KERNEL void who_am_i(Out p) {
  const Index3 block = block_index(), grid = grid_size();
  const std::uint32_t number = (block.z * grid.y + block.y) * grid.x + block.x;
  std::uint32_t* const out = p.out + (number * block_threads() + thread_index()) * 8;
  ++out[0];
  out[1] = block.x;
  out[2] = block.y;
  out[3] = block.z;
  out[4] = thread_index();
  out[5] = warp_index();
  out[6] = lane_index();
}

TEST(Runner, RunsEachThreadOfEachBlockOnce) {
  for (const simt::Order order : simt::kAllOrders) {
    simt::TestQueue test({order, 9});
    std::vector<std::uint32_t> out(2 * 3 * 4 * 96 * 8);
    launch(test.queue, who_am_i, {.grid = {2, 3, 4}, .threads = 96}, Out{out.data()});
    EXPECT_EQ(simt::sentences_of(test.queue.take_defects()), std::vector<std::string>{});
    const std::uint32_t* at = out.data();
    for (std::uint32_t z = 0; z < 4; ++z) {
      for (std::uint32_t y = 0; y < 3; ++y) {
        for (std::uint32_t x = 0; x < 2; ++x) {
          for (std::uint32_t t = 0; t < 96; ++t, at += 8) {
            const std::vector<std::uint32_t> expected{1, x, y, z, t, t / 32, t % 32};
            EXPECT_EQ(std::vector<std::uint32_t>(at, at + 7), expected);
          }
        }
      }
    }
  }
}

// Rotates a row of numbers through shared memory, three times.
KV_KERNEL void rotate(Out p) {
  KV_SHARED_BYTES(bytes);
  auto* const shared = reinterpret_cast<std::uint32_t*>(bytes);
  const unsigned thread = thread_index(), threads = block_threads();
  std::uint32_t value = thread;
  for (int i = 0; i < 3; ++i) {
    shared[thread] = value;
    sync_block();
    value = shared[(thread + 33) % threads];
    sync_block();
  }
  p.out[block_index().x * threads + thread] = value;
}

TEST(Runner, ABarrierWaitsForAllThreads) {
  for (const std::uint32_t threads : {64U, 1024U}) {
    for (const simt::Order order : simt::kAllOrders) {
      simt::TestQueue test({order, 5});
      std::vector<std::uint32_t> out(5 * threads);
      launch(test.queue, rotate,
             {.grid = {5, 1, 1}, .threads = threads, .shared_bytes = 4 * threads}, Out{out.data()});
      EXPECT_EQ(simt::sentences_of(test.queue.take_defects()), std::vector<std::string>{});
      EXPECT_EQ(test.queue.counters().block_barriers, 5 * 6);
      for (std::uint32_t i = 0; i < out.size(); ++i) {
        EXPECT_EQ(out[i], (i % threads + 99) % threads) << i;
      }
    }
  }
}

KV_KERNEL void read_shared(Out p) {
  KV_SHARED_BYTES(bytes);
  auto* const shared = reinterpret_cast<std::uint32_t*>(bytes);
  p.out[block_index().x * 32 + thread_index()] = shared[thread_index()];
  shared[thread_index()] = 1;
}

TEST(Runner, SharedMemoryOfEachBlockIsNoNumber) {
  simt::TestQueue test;
  std::uint32_t out[64] = {};
  launch(test.queue, read_shared, {.grid = {2, 1, 1}, .threads = 32, .shared_bytes = 128},
         Out{out});
  for (const std::uint32_t word : out) EXPECT_EQ(word, 0x7fa17fa1U);
}

constexpr int kTwoBarriers = __LINE__ + 5;
KV_KERNEL void two_barriers(Out p) {
  ++p.out[block_index().x];
  if (thread_index() < 32) {
    // Two lines: the barriers of two branches.
    sync_block();
  } else {
    sync_block();
  }
}

TEST(Runner, ABarrierInABranchIsDivergence) {
  for (const simt::Order order : simt::kAllOrders) {
    simt::TestQueue test({order, 2});
    std::uint32_t out[3] = {};
    launch(test.queue, two_barriers, {.grid = {3, 1, 1}, .threads = 64}, Out{out});
    const simt::Defect defect = simt::only_defect(test.queue);
    EXPECT_EQ(defect.kind, simt::DefectKind::barrier_divergence);
    EXPECT_EQ(defect.place.file, kFile);
    EXPECT_EQ(defect.other.file, kFile);
    const std::set<int> lines{defect.place.line, defect.other.line};
    EXPECT_EQ(lines, (std::set<int>{kTwoBarriers, kTwoBarriers + 2}));
    EXPECT_NE(defect.thread < 32, defect.other_thread < 32);
    EXPECT_EQ(defect.thread < 32, defect.place.line == kTwoBarriers);
    // The rest of the launch was given up.
    EXPECT_EQ((out[0] != 0) + (out[1] != 0) + (out[2] != 0), 1);
  }
}

constexpr int kExitedBarrier = __LINE__ + 3;
KV_KERNEL void some_exit(Out p) {
  if (thread_index() % 32 == 5) return;
  sync_block();
  ++p.out[0];
}

TEST(Runner, ABarrierThatExitedThreadsMissIsReportedAndGoesOn) {
  for (const simt::Order order : simt::kAllOrders) {
    simt::TestQueue test({order, 2});
    std::uint32_t out[1] = {};
    launch(test.queue, some_exit, {.grid = {2, 1, 1}, .threads = 64}, Out{out});
    const simt::Defect defect = simt::only_defect(test.queue);
    EXPECT_EQ(defect.kind, simt::DefectKind::barrier_divergence);
    EXPECT_EQ(defect.place.file, kFile);
    EXPECT_EQ(defect.place.line, kExitedBarrier);
    EXPECT_EQ(defect.detail, "2 of 64 threads have exited and never arrive");
    EXPECT_EQ(out[0], 2 * 62U);
  }
}

KV_KERNEL void throws(Out p) {
  sync_block();
  if (thread_index() == 17) throw std::runtime_error("thread 17");
  ++p.out[0];
}

TEST(Runner, AnExceptionOfAThreadReachesTheCaller) {
  simt::TestQueue test;
  std::uint32_t out[1] = {};
  EXPECT_THROW(launch(test.queue, throws, {.grid = {4, 1, 1}, .threads = 64}, Out{out}),
               std::runtime_error);
  EXPECT_EQ(out[0], 17U);
  // The next launch is not disturbed.
  std::vector<std::uint32_t> rotated(64);
  launch(test.queue, rotate, {.grid = {}, .threads = 64, .shared_bytes = 256}, Out{rotated.data()});
  EXPECT_EQ(rotated[0], 99U % 64);
}

}  // namespace
}  // namespace kvcheck::kernels::device
