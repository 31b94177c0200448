// Asynchronous copies land between issue and wait, at a moment that the order decides.
#include "kernels/simt/copies.h"

#include <array>
#include <cstring>
#include <set>

#include <gtest/gtest.h>

#include "tests/kernels/simt/test_launch.h"

namespace kvcheck::kernels::simt {
namespace {

struct Memory {
  std::array<std::byte, 64> shared{};
  std::array<std::byte, 64> global{};
  Memory() { global.fill(std::byte{7}); }
  CopyQueue::Copy copy(std::size_t at = 0, int bytes = 16) {
    return {.shared = shared.data() + at, .global = global.data() + at, .bytes = bytes, .site = {}};
  }
  bool landed(std::size_t at = 0) const { return shared[at] == std::byte{7}; }
};

void nothing(const CopyQueue::Copy&) {}

TEST(Copies, LandAtTheLastMomentInLockstepAndAtOnceInReverse) {
  Random random(1);
  for (const auto& [order, at_once] : {std::pair{Order::lockstep, false}, {Order::reverse, true}}) {
    Memory memory;
    CopyQueue queue;
    queue.issue(memory.copy(), order, random);
    queue.commit();
    for (int i = 0; i < 20; ++i) queue.drift(random);
    EXPECT_EQ(memory.landed(), at_once) << to_string(order);
    queue.wait(0, nothing);
    EXPECT_TRUE(memory.landed()) << to_string(order);
    EXPECT_EQ(queue.unfinished(), nullptr);
  }
}

TEST(Copies, TheSourceIsReadWhenTheyLand) {
  Random random(1);
  Memory memory;
  CopyQueue queue;
  queue.issue(memory.copy(), Order::lockstep, random);
  queue.commit();
  memory.global[3] = std::byte{9};
  queue.wait(0, nothing);
  EXPECT_EQ(memory.shared[2], std::byte{7});
  EXPECT_EQ(memory.shared[3], std::byte{9});
}

TEST(Copies, DrawAllMoments) {
  std::set<int> moments;  // Switches that passed before the copy landed.
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    Memory memory;
    CopyQueue queue;
    queue.issue(memory.copy(), Order::random, random);
    queue.commit();
    int moment = 0;
    for (; moment < 3 && !memory.landed(); ++moment) queue.drift(random);
    moments.insert(memory.landed() ? moment : 4);
    queue.wait(0, nothing);
    EXPECT_TRUE(memory.landed());
  }
  EXPECT_EQ(moments, (std::set<int>{0, 1, 2, 3, 4}));
}

TEST(Copies, BytesThatAreNotReadBecomeZero) {
  Random random(1);
  for (int bytes = 0; bytes <= 16; ++bytes) {
    Memory memory;
    memory.shared.fill(std::byte{1});
    CopyQueue queue;
    queue.issue(memory.copy(16, bytes), Order::reverse, random);
    for (std::size_t i = 0; i < 64; ++i) {
      const bool inside = i >= 16 && i < 32;
      const bool read = inside && i < 16 + static_cast<std::size_t>(bytes);
      EXPECT_EQ(memory.shared[i], read ? std::byte{7} : inside ? std::byte{0} : std::byte{1});
    }
  }
}

TEST(Copies, WaitsLeaveTheNewestGroupsAndWhatIsNotCommitted) {
  Random random(1);
  Memory memory;
  CopyQueue queue;
  queue.issue(memory.copy(0), Order::lockstep, random);
  queue.commit();
  queue.commit();  // A group of nothing counts.
  queue.issue(memory.copy(16), Order::lockstep, random);
  queue.commit();
  queue.issue(memory.copy(32), Order::lockstep, random);
  queue.wait(3, nothing);
  EXPECT_FALSE(memory.landed(0));
  queue.wait(2, nothing);
  EXPECT_TRUE(memory.landed(0));
  EXPECT_FALSE(memory.landed(16));
  queue.wait(1, nothing);
  EXPECT_FALSE(memory.landed(16));
  queue.wait(0, nothing);
  EXPECT_TRUE(memory.landed(16));
  EXPECT_FALSE(memory.landed(32));
  ASSERT_NE(queue.unfinished(), nullptr);
  EXPECT_EQ(queue.unfinished()->shared, memory.shared.data() + 32);
  queue.clear();
  EXPECT_EQ(queue.unfinished(), nullptr);
}

}  // namespace
}  // namespace kvcheck::kernels::simt

namespace kvcheck::kernels::device {
namespace {

struct CopyRows {
  const std::uint32_t* from;
  std::uint32_t* to;
  int bytes = 16;
  bool commits = true;
  bool waits = true;
};

constexpr int kCopyLine = __LINE__ + 4;
KV_KERNEL void copy_rows(CopyRows p) {
  KV_SHARED_BYTES(shared);
  unsigned char* const mine = shared + 16 * thread_index();
  copy_async(mine, p.from + 4 * thread_index(), p.bytes);
  if (p.commits) commit_copies();
  if (p.waits) wait_copies<0>();
  if (!p.waits || !p.commits) return;
  sync_block();
  const unsigned other = (thread_index() + 1) % block_threads();
  store_packet(p.to + 4 * thread_index(), load_packet(shared + 16 * other));
}

TEST(Copies, AWaitAndABarrierHandThemToOthers) {
  for (const simt::Order order : simt::kAllOrders) {
    simt::TestQueue test({order, 11});
    auto* const from = test.allocate<std::uint32_t>(256);
    auto* const to = test.allocate<std::uint32_t>(256);
    for (std::uint32_t i = 0; i < 256; ++i) from[i] = i;
    launch(test.queue, copy_rows, {.grid = {}, .threads = 64, .shared_bytes = 1024},
           CopyRows{from, to, 12});
    EXPECT_EQ(simt::sentences_of(test.queue.take_defects()), std::vector<std::string>{});
    for (std::uint32_t i = 0; i < 256; ++i) {
      EXPECT_EQ(to[i], i % 4 == 3 ? 0 : (i + 4) % 256) << i;
    }
  }
}

TEST(Copies, AreWaitedForBeforeAThreadExits) {
  for (const bool commits : {true, false}) {
    simt::TestQueue test;
    auto* const from = test.allocate<std::uint32_t>(128);
    for (int i = 0; i < 128; ++i) from[i] = 1;
    launch(test.queue, copy_rows, {.grid = {}, .threads = 32, .shared_bytes = 512},
           CopyRows{from, nullptr, 16, commits, !commits});
    const simt::Defect defect = simt::only_defect(test.queue);
    EXPECT_EQ(defect.kind, simt::DefectKind::copy_in_flight);
    EXPECT_EQ(defect.place.file, "tests/kernels/simt/copies_test.cpp");
    EXPECT_EQ(defect.place.line, kCopyLine);
  }
}

TEST(Copies, ReadNoMoreThanSixteenBytes) {
  for (const int bytes : {-1, 17}) {
    simt::TestQueue test;
    auto* const from = test.allocate<std::uint32_t>(128);
    launch(test.queue, copy_rows, {.grid = {}, .threads = 32, .shared_bytes = 512},
           CopyRows{from, nullptr, bytes});
    const simt::Defect defect = simt::only_defect(test.queue);
    EXPECT_EQ(defect.kind, simt::DefectKind::out_of_bounds);
    EXPECT_EQ(defect.place.line, kCopyLine);
  }
}

}  // namespace
}  // namespace kvcheck::kernels::device
