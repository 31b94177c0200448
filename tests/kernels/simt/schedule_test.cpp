// The same schedule gives the same interleaving; other seeds and orders give others.
#include "kernels/simt/schedule.h"

#include <algorithm>
#include <map>
#include <set>

#include "tests/kernels/simt/test_launch.h"

namespace kvcheck::kernels::simt {
namespace {

TEST(Schedule, OrdersHaveNames) {
  std::set<std::string_view> names;
  for (const Order order : kAllOrders) {
    EXPECT_EQ(order_from(to_string(order)), order);
    names.insert(to_string(order));
  }
  EXPECT_EQ(names.size(), 5U);
  EXPECT_EQ(order_from("sideways"), std::nullopt);
}

}  // namespace
}  // namespace kvcheck::kernels::simt

namespace kvcheck::kernels::device {
namespace {

struct Trace {
  std::vector<int>* steps;  ///< Thread after thread, 1000 * block + thread.
};

// Three steps of each thread, the lanes of a warp free of each other.
KV_KERNEL void walk(Trace p) {
  for (int i = 0; i < 3; ++i) {
    p.steps->push_back(static_cast<int>(1000 * block_index().x + thread_index()));
    sync_warp(1U << lane_index());
  }
}

std::vector<int> trace(simt::Order order, std::uint64_t seed, int launches = 1) {
  simt::TestQueue test({order, seed});
  std::vector<int> steps;
  for (int i = 0; i < launches; ++i) {
    steps.clear();
    launch(test.queue, walk, {.grid = {4, 1, 1}, .threads = 96}, Trace{&steps});
  }
  EXPECT_EQ(simt::sentences_of(test.queue.take_defects()), std::vector<std::string>{});
  EXPECT_EQ(steps.size(), 4U * 96 * 3);
  return steps;
}

TEST(Schedule, LockstepAndReverseAreFixed) {
  std::vector<int> lockstep, reverse;
  for (int block = 0; block < 4; ++block) {
    for (int warp = 0; warp < 3; ++warp) {
      for (int step = 0; step < 3; ++step) {
        for (int lane = 0; lane < 32; ++lane) {
          lockstep.push_back(1000 * block + 32 * warp + lane);
          reverse.push_back(1000 * (3 - block) + 32 * (2 - warp) + 31 - lane);
        }
      }
    }
  }
  EXPECT_EQ(trace(simt::Order::lockstep, 1), lockstep);
  EXPECT_EQ(trace(simt::Order::lockstep, 2), lockstep);
  EXPECT_EQ(trace(simt::Order::reverse, 1), reverse);
}

TEST(Schedule, TheSeedDecidesTheRest) {
  for (const simt::Order order :
       {simt::Order::random, simt::Order::priority, simt::Order::starve}) {
    const std::vector<int> first = trace(order, 1);
    EXPECT_EQ(trace(order, 1), first);
    EXPECT_NE(trace(order, 2), first);
    // A second launch of a queue is another one, and it too comes again.
    EXPECT_NE(trace(order, 1, 2), first);
    EXPECT_EQ(trace(order, 1, 2), trace(order, 1, 2));
  }
  EXPECT_NE(trace(simt::Order::random, 1), trace(simt::Order::priority, 1));
  EXPECT_NE(trace(simt::Order::random, 1), trace(simt::Order::starve, 1));
}

TEST(Schedule, BlocksComeInADrawnOrder) {
  std::set<std::vector<int>> orders;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    std::vector<int> blocks;
    for (const int step : trace(simt::Order::random, seed)) {
      if (blocks.empty() || blocks.back() != step / 1000) blocks.push_back(step / 1000);
    }
    EXPECT_EQ(blocks.size(), 4U);  // One at a time.
    orders.insert(blocks);
  }
  EXPECT_GE(orders.size(), 15U);  // Of 24.
}

TEST(Schedule, AStarvingWarpRunsWhenNoOtherCan) {
  const std::vector<int> steps = trace(simt::Order::starve, 3);
  for (std::size_t block = 0; block < 4; ++block) {
    const auto begin = steps.begin() + static_cast<std::ptrdiff_t>(block * 96 * 3);
    const int warp = begin[96 * 3 - 1] % 1000 / 32;
    for (std::ptrdiff_t i = 0; i < 96 * 3; ++i) {
      EXPECT_EQ(begin[i] % 1000 / 32 == warp, i >= 64 * 3);
    }
  }
}

TEST(Schedule, ThePriorityOfAThreadOutlastsItsSteps) {
  // Runs of three steps of one thread: nobody comes between, but for the few changes.
  const std::vector<int> steps = trace(simt::Order::priority, 3);
  int whole = 0;
  for (std::size_t i = 0; i + 2 < steps.size(); ++i) {
    whole += steps[i] == steps[i + 1] && steps[i] == steps[i + 2];
  }
  EXPECT_GE(whole, 4 * 90);
}

struct Counter {
  std::uint32_t* at;
};

// Not atomic: what comes between load and store is lost.
KV_KERNEL void count_badly(Counter p) {
  for (int i = 0; i < 8; ++i) {
    Packet packet = load_packet(p.at);
    ++packet.word[0];
    store_packet(p.at, packet);
  }
}

TEST(Schedule, PreemptsBetweenAccessesWhereItDraws) {
  for (const simt::Order order : simt::kAllOrders) {
    std::uint32_t lost = 0;
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      simt::TestQueue test({order, seed}, {.memory = false, .counters = false});
      auto* const at = test.allocate<std::uint32_t>(4);
      at[0] = 0;
      launch(test.queue, count_badly, {.grid = {}, .threads = 128}, Counter{at});
      lost += 8 * 128 - at[0];
    }
    const bool fixed = order == simt::Order::lockstep || order == simt::Order::reverse;
    EXPECT_EQ(lost == 0, fixed) << simt::to_string(order);
  }
}

}  // namespace
}  // namespace kvcheck::kernels::device
