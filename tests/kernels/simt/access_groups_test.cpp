// Lanes are put together by instruction and turn, in whatever order they come.
#include "kernels/simt/access_groups.h"

#include <gtest/gtest.h>

namespace kvcheck::kernels::simt {
namespace {

struct Groups {
  Counters counters;
  AccessGroups groups{2, counters};
  void load(int thread, std::uint32_t site, std::uint64_t address, std::size_t bytes = 4) {
    groups.add(thread, site, Traffic::global_load, address, bytes);
  }
};

TEST(AccessGroups, CountsWhenTheLastLaneHasCome) {
  Groups a;
  for (int lane = 31; lane > 0; --lane)
    a.load(lane, 1, 4096 + static_cast<std::uint64_t>(lane) * 4);
  EXPECT_EQ(a.counters.global_loads, 0);
  a.load(0, 1, 4096);
  EXPECT_EQ(a.counters.global_loads, 1);
  EXPECT_EQ(a.counters.global_load_sectors, 4);
  a.groups.flush_all();
  EXPECT_EQ(a.counters.global_loads, 1);
}

TEST(AccessGroups, TurnsOfALoopAreApart) {
  // One lane after the other goes through three turns at 128-byte rows.
  Groups a;
  for (std::uint64_t lane = 0; lane < 32; ++lane) {
    for (std::uint64_t turn = 0; turn < 3; ++turn) {
      a.load(static_cast<int>(lane), 1, 4096 + turn * 128 + lane * 4);
    }
  }
  EXPECT_EQ(a.counters.global_loads, 3);
  EXPECT_EQ(a.counters.global_load_sectors, 12);
}

TEST(AccessGroups, WarpsAndInstructionsAreApart) {
  Groups a;
  a.load(0, 1, 4096);
  a.load(32, 1, 4096);
  a.load(1, 2, 4096);
  a.groups.flush_all();
  EXPECT_EQ(a.counters.global_loads, 3);
}

TEST(AccessGroups, AFlushBeginsToCountTurnsAnew) {
  // Lane 0 alone takes a first turn; after the flush all lanes are at their first.
  Groups a;
  a.load(0, 1, 4096);
  a.groups.flush(1);
  EXPECT_EQ(a.counters.global_loads, 0);
  a.groups.flush(0);
  EXPECT_EQ(a.counters.global_loads, 1);
  for (std::uint64_t lane = 0; lane < 32; ++lane)
    a.load(static_cast<int>(lane), 1, 4096 + lane * 4);
  EXPECT_EQ(a.counters.global_loads, 2);
  EXPECT_EQ(a.counters.global_load_sectors, 1 + 4);
}

TEST(AccessGroups, WideAccessesAreSeveral) {
  // 40 bytes of one lane: 16, 16 and 8.
  Groups a;
  a.load(0, 1, 4096, 40);
  a.groups.flush_all();
  EXPECT_EQ(a.counters.global_loads, 3);
  EXPECT_EQ(a.counters.global_load_bytes, 40);
}

}  // namespace
}  // namespace kvcheck::kernels::simt
