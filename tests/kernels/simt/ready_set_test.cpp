// Which thread runs next, order by order.
#include "kernels/simt/ready_set.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

namespace kvcheck::kernels::simt {
namespace {

/// All threads of `warps` warps, taken one after the other; none comes back.
std::vector<int> taken(Order order, int warps, std::uint64_t seed) {
  Random random(seed);
  ReadySet ready;
  ready.begin_block(order, warps * 32, random);
  for (int t = 0; t < warps * 32; ++t) ready.add(t);
  std::vector<int> threads;
  for (int last = -1; (last = ready.take(last, random)) >= 0;) threads.push_back(last);
  return threads;
}

std::vector<int> ascending(int count) {
  std::vector<int> all(static_cast<std::size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

TEST(ReadySet, LockstepAscendsAndReverseDescends) {
  std::vector<int> all = ascending(96);
  EXPECT_EQ(taken(Order::lockstep, 3, 1), all);
  std::reverse(all.begin(), all.end());
  EXPECT_EQ(taken(Order::reverse, 3, 1), all);
}

TEST(ReadySet, EveryOrderTakesEveryThreadOnce) {
  for (const Order order : {Order::random, Order::priority, Order::starve}) {
    for (const std::uint64_t seed : {1U, 2U, 3U}) {
      std::vector<int> threads = taken(order, 32, seed);
      EXPECT_NE(threads, ascending(1024)) << to_string(order);
      EXPECT_EQ(threads, taken(order, 32, seed)) << to_string(order);
      EXPECT_NE(threads, taken(order, 32, seed + 10)) << to_string(order);
      std::sort(threads.begin(), threads.end());
      EXPECT_EQ(threads, ascending(1024)) << to_string(order);
    }
  }
}

TEST(ReadySet, LockstepStaysInItsWarpThenGoesOnRound) {
  Random random(1);
  ReadySet ready;
  ready.begin_block(Order::lockstep, 96, random);
  for (const int t : {3, 40, 45, 70}) ready.add(t);
  EXPECT_EQ(ready.take(41, random), 45);  // Behind the last one of its warp ...
  EXPECT_EQ(ready.take(45, random), 40);  // ... then from the first one again ...
  EXPECT_EQ(ready.take(40, random), 70);  // ... then the next warp ...
  EXPECT_EQ(ready.take(70, random), 3);   // ... and the first after the last.
  EXPECT_EQ(ready.take(3, random), -1);
}

TEST(ReadySet, ReverseIsTheMirrorImage) {
  Random random(1);
  ReadySet ready;
  ready.begin_block(Order::reverse, 96, random);
  for (const int t : {3, 40, 45, 70}) ready.add(t);
  EXPECT_EQ(ready.take(44, random), 40);
  EXPECT_EQ(ready.take(40, random), 45);
  EXPECT_EQ(ready.take(45, random), 3);
  EXPECT_EQ(ready.take(3, random), 70);
  EXPECT_EQ(ready.take(70, random), -1);
}

TEST(ReadySet, OneWarpStarves) {
  std::vector<int> starving;
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const std::vector<int> threads = taken(Order::starve, 4, seed);
    const int warp = threads.back() / 32;
    for (std::size_t i = 0; i < 128; ++i) EXPECT_EQ(threads[i] / 32 == warp, i >= 96) << i;
    starving.push_back(warp);
  }
  for (int warp = 0; warp < 4; ++warp) {
    EXPECT_NE(std::find(starving.begin(), starving.end(), warp), starving.end()) << warp;
  }
}

TEST(ReadySet, PrioritiesHoldUntilTheyAreLowered) {
  Random random(5);
  ReadySet ready;
  ready.begin_block(Order::priority, 32, random);
  for (int t = 0; t < 32; ++t) ready.add(t);
  const int first = ready.take(-1, random);
  ready.add(first);
  EXPECT_EQ(ready.take(first, random), first);
  ready.lower(first);
  ready.add(first);
  std::vector<int> order;
  for (int last = first; (last = ready.take(last, random)) >= 0;) order.push_back(last);
  EXPECT_EQ(order.size(), 32U);
  EXPECT_EQ(order.back(), first);
}

TEST(ReadySet, PreemptsWhereTheOrderDraws) {
  Random random(1);
  ReadySet ready;
  for (const auto& [order, preempts] : {std::pair{Order::lockstep, false},
                                        {Order::reverse, false},
                                        {Order::random, true},
                                        {Order::priority, true},
                                        {Order::starve, true}}) {
    ready.begin_block(order, 64, random);
    EXPECT_EQ(ready.draw_slice(random) != 0, preempts) << to_string(order);
  }
}

}  // namespace
}  // namespace kvcheck::kernels::simt
