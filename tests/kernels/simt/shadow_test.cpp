// Races that the shadow of one word finds, held against a plain record of everything.
#include "kernels/simt/shadow.h"

#include <array>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace kvcheck::kernels::simt {
namespace {

constexpr std::uint32_t kWhole = 15;

/// One word of shared memory in a block of two warps.
struct SharedWord {
  Ordering order{0, 2};
  Word word;
  SharedWord() { order.begin_block(0); }
  bool races(int thread, bool write, std::uint32_t mask = kWhole, bool atomic = false) {
    const Cell cell = Cell(order.now(), thread, atomic, 1).with(mask);
    return note(word, cell, write, order.last_barrier(), order).found();
  }
  bool reads(int thread, std::uint32_t mask = kWhole) { return races(thread, false, mask); }
  bool writes(int thread, std::uint32_t mask = kWhole) { return races(thread, true, mask); }
};

TEST(Shadow, CellHoldsWhatItIsMadeOf) {
  const Cell cell = Cell(0xfedcba98u, 1023, true, Cell::kMostSites - 1).with(9);
  EXPECT_EQ(cell.stamp(), 0xfedcba98u);
  EXPECT_EQ(cell.thread(), 1023);
  EXPECT_EQ(cell.warp(), 31);
  EXPECT_EQ(cell.lane(), 31);
  EXPECT_EQ(cell.mask(), 9u);
  EXPECT_TRUE(cell.atomic());
  EXPECT_EQ(cell.site(), Cell::kMostSites - 1);
}

TEST(Shadow, ThreadsWithoutABarrierRace) {
  SharedWord a;
  EXPECT_FALSE(a.writes(3));
  EXPECT_FALSE(a.reads(3));
  EXPECT_TRUE(a.reads(4));
  SharedWord b;
  EXPECT_FALSE(b.reads(3));
  EXPECT_FALSE(b.reads(40));
  EXPECT_TRUE(b.writes(3));
  SharedWord c;
  EXPECT_FALSE(c.writes(3));
  EXPECT_TRUE(c.writes(4));
}

TEST(Shadow, ABlockBarrierOrders) {
  SharedWord a;
  EXPECT_FALSE(a.writes(3));
  a.order.block_barrier();
  EXPECT_FALSE(a.reads(40));
  EXPECT_FALSE(a.reads(41));
  a.order.block_barrier();
  EXPECT_FALSE(a.writes(41));
}

TEST(Shadow, AWarpBarrierOrdersItsLanesAlone) {
  SharedWord a;
  EXPECT_FALSE(a.writes(3));
  a.order.warp_barrier(0, 0xffffffffu);
  EXPECT_FALSE(a.reads(4));
  EXPECT_TRUE(a.reads(40));
  SharedWord b;
  EXPECT_FALSE(b.writes(3));
  b.order.warp_barrier(0, 0x000000ffu);
  EXPECT_FALSE(b.reads(4));
  EXPECT_TRUE(b.reads(8));
  SharedWord c;
  EXPECT_FALSE(c.writes(3));
  c.order.warp_barrier(1, 0xffffffffu);
  EXPECT_TRUE(c.reads(4));
}

TEST(Shadow, OrderGoesFromLaneToLane) {
  SharedWord a;
  EXPECT_FALSE(a.writes(0));
  a.order.warp_barrier(0, 0b011);
  a.order.warp_barrier(0, 0b110);
  EXPECT_FALSE(a.reads(2));
  SharedWord b;
  EXPECT_FALSE(b.writes(0));
  b.order.warp_barrier(0, 0b110);
  b.order.warp_barrier(0, 0b011);
  EXPECT_TRUE(b.reads(2));
}

TEST(Shadow, BytesOfAWordAreApart) {
  SharedWord a;
  EXPECT_FALSE(a.writes(0, 0b0011));
  EXPECT_FALSE(a.writes(1, 0b1100));
  EXPECT_FALSE(a.reads(0, 0b0011));
  EXPECT_FALSE(a.reads(1, 0b1100));
  EXPECT_TRUE(a.reads(2, 0b0010));
  SharedWord b;
  EXPECT_FALSE(b.writes(0, 0b0011));
  EXPECT_FALSE(b.writes(1, 0b1100));
  EXPECT_TRUE(b.reads(2, 0b1000));
}

TEST(Shadow, ALaterByteDoesNotMakeAnEarlierOneLate) {
  SharedWord a;
  EXPECT_FALSE(a.writes(0, 0b0001));
  a.order.warp_barrier(0, 0xffffffffu);
  EXPECT_FALSE(a.writes(0, 0b0010));
  EXPECT_FALSE(a.reads(1, 0b0001));
  EXPECT_TRUE(a.reads(1, 0b0010));
}

TEST(Shadow, AtomicAccessesDoNotRaceWithEachOther) {
  SharedWord a;
  EXPECT_FALSE(a.races(0, true, kWhole, true));
  EXPECT_FALSE(a.races(40, true, kWhole, true));
  EXPECT_TRUE(a.reads(1));
  SharedWord b;
  EXPECT_FALSE(b.writes(0));
  EXPECT_FALSE(b.races(0, true, kWhole, true));
  EXPECT_TRUE(b.races(1, true, kWhole, true));
}

TEST(Shadow, AReaderOfAnotherWarpIsNotForgotten) {
  SharedWord a;
  EXPECT_FALSE(a.reads(0));
  for (int thread = 32; thread < 64; ++thread) EXPECT_FALSE(a.reads(thread));
  a.order.warp_barrier(1, 0xffffffffu);
  EXPECT_FALSE(a.reads(50));
  EXPECT_TRUE(a.writes(50));
}

TEST(Shadow, BlocksAreOrderedByTheEndOfALaunchAlone) {
  Ordering first(0, 1);
  Word word;
  first.begin_block(5);
  EXPECT_FALSE(
      note(word, Cell(first.now(), 0, false, 1).with(kWhole), true, first.launch_begin(), first)
          .found());
  first.block_barrier();
  first.begin_block(2);
  const Race race =
      note(word, Cell(first.now(), 0, false, 1).with(kWhole), false, first.launch_begin(), first);
  ASSERT_TRUE(race.found());
  EXPECT_TRUE(race.wrote);
  EXPECT_EQ(first.block_at(race.earlier.stamp()), 5);
  EXPECT_EQ(first.block_at(first.now()), 2);

  Ordering second(first.now(), 1);
  second.begin_block(0);
  EXPECT_FALSE(
      note(word, Cell(second.now(), 9, false, 1).with(kWhole), true, second.launch_begin(), second)
          .found());
}

/// Everything that happened to one word, with what each thread knows of the others.
class Record {
 public:
  explicit Record(int threads)
      : known_(static_cast<std::size_t>(threads),
               std::vector<int>(static_cast<std::size_t>(threads))),
        ticks_(static_cast<std::size_t>(threads), 1) {}

  bool races(int thread, bool write, std::uint32_t mask) {
    const auto self = static_cast<std::size_t>(thread);
    bool found = false;
    for (const Event& event : events_) {
      found |= event.thread != self && (event.write || write) && (event.mask & mask) != 0 &&
               known_[self][event.thread] < event.tick;
    }
    events_.push_back({self, ticks_[self], write, mask});
    return found;
  }
  void barrier(const std::vector<std::size_t>& threads) {
    std::vector<int> joined(ticks_.size());
    for (const std::size_t t : threads) {
      for (std::size_t i = 0; i < joined.size(); ++i) {
        joined[i] = std::max(joined[i], known_[t][i]);
      }
      joined[t] = std::max(joined[t], ticks_[t]);
    }
    for (const std::size_t t : threads) {
      known_[t] = joined;
      ++ticks_[t];
    }
  }

 private:
  struct Event {
    std::size_t thread;
    int tick;
    bool write;
    std::uint32_t mask;
  };
  std::vector<std::vector<int>> known_;
  std::vector<int> ticks_;
  std::vector<Event> events_;
};

/// \param parts whether accesses take parts of the word and barriers some lanes of a warp
void compare_with_record(std::uint32_t seed, bool parts) {
  std::mt19937 random(seed);
  const auto below = [&](std::uint32_t end) { return random() % end; };
  SharedWord shadow;
  Record record(64);
  // Four lanes of each warp are enough, the others stay idle.
  const auto any_thread = [&] { return static_cast<int>(below(2) * 32 + below(4)); };
  for (int step = 0; step < 60; ++step) {
    const std::uint32_t draw = below(10);
    if (draw == 0) {
      std::vector<std::size_t> all(64);
      for (std::size_t i = 0; i < 64; ++i) all[i] = i;
      record.barrier(all);
      shadow.order.block_barrier();
    } else if (draw < 4) {
      const std::uint32_t warp = below(2);
      const std::uint32_t lanes = parts ? 1 + below(15) : 0xffffffffu;
      std::vector<std::size_t> those;
      for (std::size_t i = 0; i < 32; ++i) {
        if ((lanes >> i & 1) != 0) those.push_back(warp * 32 + i);
      }
      record.barrier(those);
      shadow.order.warp_barrier(static_cast<int>(warp), lanes);
    } else {
      const int thread = any_thread();
      const bool write = below(3) == 0;
      const std::uint32_t mask = parts ? 1 + below(15) : kWhole;
      const bool expected = record.races(thread, write, mask);
      const bool seen = shadow.races(thread, write, mask);
      EXPECT_TRUE(expected || !seen) << "a race that is none, seed " << seed << ", step " << step;
      if (parts) continue;
      EXPECT_EQ(seen, expected) << "seed " << seed << ", step " << step;
      if (expected) return;  // What follows a race may hide behind it.
    }
  }
}

TEST(Shadow, FindsTheFirstRaceOfEveryRecordOfWholeWords) {
  for (std::uint32_t seed = 0; seed < 3000; ++seed) compare_with_record(seed, false);
}

TEST(Shadow, FindsNoRaceWhereARecordHasNone) {
  for (std::uint32_t seed = 0; seed < 3000; ++seed) compare_with_record(seed, true);
}

}  // namespace
}  // namespace kvcheck::kernels::simt
