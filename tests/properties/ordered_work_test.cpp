// Results are consumed in order whatever finishes first.
#include "properties/ordered_work.h"

#include <atomic>
#include <stdexcept>

#include <gtest/gtest.h>

namespace kvcheck::properties {
namespace {

const auto never = [] { return false; };
const auto nothing = [] {};

TEST(OrderedWork, ConsumesInOrder) {
  for (const std::size_t workers : {1, 2, 5}) {
    std::vector<std::uint64_t> seen;
    in_order(
        workers, 3, 60,
        [](std::size_t, std::uint64_t item) {
          if (item % 7 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
          return item * item;
        },
        [&](std::uint64_t item, std::uint64_t result) {
          EXPECT_EQ(result, item * item);
          seen.push_back(item);
        },
        never, nothing);
    ASSERT_EQ(seen.size(), 57u);
    for (std::size_t i = 0; i < seen.size(); ++i) EXPECT_EQ(seen[i], i + 3);
  }
}

TEST(OrderedWork, AStopLeavesNoGap) {
  for (const std::size_t workers : {1, 4}) {
    std::atomic<int> worked{0};
    std::uint64_t consumed = 0;
    in_order(
        workers, 0, UINT64_MAX, [&](std::size_t, std::uint64_t) { return ++worked; },
        [&](std::uint64_t item, int) { EXPECT_EQ(item, consumed++); }, [&] { return worked >= 50; },
        nothing);
    EXPECT_EQ(consumed, static_cast<std::uint64_t>(worked));
  }
}

TEST(OrderedWork, ASlowConsumerHoldsTheWorkersBack) {
  std::atomic<std::uint64_t> worked{0};
  std::uint64_t furthest = 0;
  in_order(
      2, 0, 4 * kMostWaiting, [&](std::size_t, std::uint64_t) { return ++worked; },
      [&](std::uint64_t item, std::uint64_t) {
        if (item == 0) std::this_thread::sleep_for(std::chrono::milliseconds(50));
        furthest = std::max(furthest, worked - item);
      },
      never, nothing);
  EXPECT_LE(furthest, kMostWaiting + 4);
}

TEST(OrderedWork, WhatIsThrownReachesTheCallerWhenItsItemIsDue) {
  for (const std::size_t workers : {1, 3}) {
    std::uint64_t consumed = 0;
    const auto work = [](std::size_t, std::uint64_t item) {
      if (item == 9) throw std::runtime_error("nine");
      return 0;
    };
    EXPECT_THROW(in_order(
                     workers, 0, 40, work, [&](std::uint64_t, int) { ++consumed; }, never, nothing),
                 std::runtime_error);
    EXPECT_EQ(consumed, 9u);
  }
}

}  // namespace
}  // namespace kvcheck::properties
