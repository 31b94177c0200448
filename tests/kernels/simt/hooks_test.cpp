// Each hook tells the monitor what the code is about to touch, and nobody when no thread runs.
#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>

#include <gtest/gtest.h>

#include "kernels/simt/symbols.h"
#include "kernels/simt/thread.h"

extern "C" {
#define KV_DECLARE(bytes)                  \
  void __tsan_read##bytes(void*);          \
  void __tsan_write##bytes(void*);         \
  void __tsan_volatile_read##bytes(void*); \
  void __tsan_volatile_write##bytes(void*);
KV_DECLARE(1)
KV_DECLARE(2)
KV_DECLARE(4)
KV_DECLARE(8)
KV_DECLARE(16)
void __tsan_unaligned_read4(void*);
void __tsan_unaligned_write8(void*);
void __tsan_read_range(void*, std::size_t);
void __tsan_write_range(void*, std::size_t);
void __tsan_vptr_read(void**);
void* __tsan_memcpy(void*, const void*, std::size_t);
void* __tsan_memset(void*, int, std::size_t);
unsigned __tsan_atomic32_fetch_add(volatile unsigned*, unsigned, int);
unsigned long __tsan_atomic64_exchange(volatile unsigned long*, unsigned long, int);
int __tsan_atomic32_compare_exchange_strong(volatile unsigned*, unsigned*, unsigned, int, int);
}

namespace kvcheck::kernels::simt {
namespace {

int yields = 0, given_up = 0;

/// A thread on a stack of its own, whose accesses are counted.
struct Hooks : ::testing::Test {
  GlobalMemory memory;
  std::byte* data = memory.allocate(256, Use::read_write, "data");
  Monitor monitor{{}, {}, memory};
  std::array<std::byte, 64> stack{};
  Thread thread;

  Hooks() {
    monitor.begin_block(0, {});
    thread.monitor = &monitor;
    thread.stack_begin = stack.data();
    thread.stack_end = stack.data() + stack.size();
    yields = given_up = 0;
    running = {&thread, 0,
               [] {
                 ++yields;
                 running.accesses_until_yield = 2;
               },
               [] { ++given_up; }};
  }
  ~Hooks() override { running = {}; }
  void expect(std::int64_t loaded, std::int64_t stored) {
    monitor.end_block();
    EXPECT_EQ(monitor.counters().global_load_bytes, loaded);
    EXPECT_EQ(monitor.counters().global_store_bytes, stored);
  }
};

TEST_F(Hooks, NumbersOfEverySize) {
  __tsan_read1(data);
  __tsan_read2(data);
  __tsan_read4(data);
  __tsan_read8(data);
  __tsan_read16(data);
  __tsan_volatile_read4(data);
  __tsan_write1(data);
  __tsan_write2(data);
  __tsan_write4(data);
  __tsan_write8(data);
  __tsan_write16(data);
  __tsan_volatile_write8(data);
  expect(1 + 2 + 4 + 8 + 16 + 4, 1 + 2 + 4 + 8 + 16 + 8);
  EXPECT_TRUE(monitor.finish().empty());
}

TEST_F(Hooks, RangesAndCopies) {
  __tsan_unaligned_read4(data + 1);
  __tsan_unaligned_write8(data + 3);
  __tsan_read_range(data + 1, 40);
  __tsan_write_range(data + 1, 7);
  __tsan_vptr_read(reinterpret_cast<void**>(data));
  expect(4 + 40 + 8, 8 + 7);
  EXPECT_TRUE(monitor.finish().empty());
}

TEST_F(Hooks, CallsOfTheLibraryDoTheirWork) {
  std::memset(data, 0, 64);
  EXPECT_EQ(__tsan_memset(data, 3, 16), data);
  EXPECT_EQ(__tsan_memcpy(data + 32, data, 16), data + 32);
  EXPECT_EQ(data[15], std::byte{3});
  EXPECT_EQ(data[47], std::byte{3});
  EXPECT_EQ(data[48], std::byte{0});
  expect(16, 16 + 16);
}

TEST_F(Hooks, AtomicsChangeWhatTheyPointTo) {
  auto* const word = reinterpret_cast<unsigned*>(data);
  auto* const wide = reinterpret_cast<unsigned long*>(data + 8);
  *word = 5;
  *wide = 6;
  EXPECT_EQ(__tsan_atomic32_fetch_add(word, 2, 0), 5u);
  EXPECT_EQ(__tsan_atomic64_exchange(wide, 9, 0), 6u);
  unsigned expected = 7;
  EXPECT_EQ(__tsan_atomic32_compare_exchange_strong(word, &expected, 1, 0, 0), 1);
  EXPECT_EQ(*word, 1u);
  EXPECT_EQ(*wide, 9u);
  expect(0, 4 + 8 + 4);
}

TEST_F(Hooks, MisalignedNumbersAreFound) {
  __tsan_read4(data + 2);
  const std::vector<Defect> defects = monitor.finish();
  ASSERT_EQ(defects.size(), 1u);
  EXPECT_EQ(defects[0].kind, DefectKind::misaligned);
}

TEST_F(Hooks, TheOwnStackIsIgnored) {
  __tsan_write4(stack.data());
  __tsan_write4(stack.data() + 60);
  EXPECT_TRUE(monitor.finish().empty());
  EXPECT_EQ(given_up, 0);
  __tsan_write4(stack.data() + 64);
  EXPECT_EQ(given_up, 1);
  ASSERT_EQ(monitor.finish().size(), 1u);
}

TEST_F(Hooks, NothingIsWatchedWhileNoThreadRuns) {
  {
    const RuntimeScope scope;
    __tsan_write4(data);
    __tsan_write4(nullptr);
    EXPECT_EQ(__tsan_atomic32_fetch_add(reinterpret_cast<unsigned*>(data), 1, 0), 0x7fa77fa7u);
  }
  EXPECT_EQ(running.thread, &thread);
  expect(0, 0);
  EXPECT_EQ(given_up, 0);
}

TEST_F(Hooks, OthersRunBetweenAccesses) {
  running.accesses_until_yield = 3;
  for (int i = 0; i < 3; ++i) __tsan_read1(data);
  EXPECT_EQ(yields, 1);
  for (int i = 0; i < 4; ++i) __tsan_read1(data);
  EXPECT_EQ(yields, 3);
  running.accesses_until_yield = 0;
  for (int i = 0; i < 100; ++i) __tsan_read1(data);
  EXPECT_EQ(yields, 3);
}

TEST(Symbols, AnUnknownAddressHasNoLine) {
  EXPECT_TRUE(place_of(std::uintptr_t{0}).file.empty());
  EXPECT_TRUE(place_of(std::uintptr_t{16}).file.empty());
  EXPECT_EQ(place_of(std::uintptr_t{16}).code, 16u);
}

}  // namespace
}  // namespace kvcheck::kernels::simt
