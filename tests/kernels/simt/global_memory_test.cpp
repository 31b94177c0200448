// Allocations, their red zones, and what counts as written.
#include "kernels/simt/global_memory.h"

#include <cmath>
#include <cstring>
#include <stdexcept>

#include <gtest/gtest.h>

#include "kernels/simt/monitor.h"

namespace kvcheck::kernels::simt {
namespace {

TEST(GlobalMemory, BeginsAlignedAndNotANumber) {
  GlobalMemory memory;
  for (const std::size_t bytes : {1, 256, 1000}) {
    std::byte* const data = memory.allocate(bytes, Use::scratch, "a");
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(data) % 256, 0u);
  }
  std::byte* const data = memory.allocate(64, Use::scratch, "b");
  float number;
  std::memcpy(&number, data, 4);
  EXPECT_TRUE(std::isnan(number));
  std::uint16_t half;
  std::memcpy(&half, data + 2, 2);
  EXPECT_EQ(half & 0x7c00, 0x7c00);  // f16: all bits of the exponent, and some below.
  EXPECT_NE(half & 0x03ff, 0);
  EXPECT_EQ(half & 0x7f80, 0x7f80);  // bf16
  EXPECT_NE(half & 0x007f, 0);
}

TEST(GlobalMemory, FindsWhoHoldsAByte) {
  GlobalMemory memory;
  std::byte* const a = memory.allocate(100, Use::input, "a");
  EXPECT_EQ(memory.find(a)->name, "a");
  EXPECT_EQ(memory.find(a + 99)->bytes, 100u);
  EXPECT_EQ(memory.find(a + 100), nullptr);
  EXPECT_EQ(memory.find(a - 1), nullptr);
  EXPECT_EQ(memory.nearest(a + 250)->name, "a");
  memory.release(a);
  EXPECT_EQ(memory.find(a), nullptr);
  EXPECT_EQ(memory.nearest(a), nullptr);
  EXPECT_THROW(memory.release(a), std::invalid_argument);
}

TEST(GlobalMemory, AnAllocationOfNoBytesHoldsNone) {
  GlobalMemory memory;
  std::byte* const a = memory.allocate(0, Use::output, "a");
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(memory.find(a), nullptr);
  memory.release(a);
  memory.release(nullptr);
}

/// One thread of one launch stores `bytes` bytes.
void store(GlobalMemory& memory, std::byte* to, std::size_t bytes) {
  Monitor monitor({}, {}, memory);
  monitor.begin_block(0, {});
  Access access;
  access.address = to;
  access.bytes = bytes;
  access.write = true;
  access.unaligned = true;
  access.site = Site::current();
  EXPECT_TRUE(monitor.access(0, access));
  monitor.end_block();
  EXPECT_TRUE(monitor.finish().empty());
}

TEST(GlobalMemory, TellsWhatNoLaunchHasWritten) {
  GlobalMemory memory;
  std::byte* const out = memory.allocate(100, Use::output, "rows");
  ASSERT_TRUE(memory.check_written(out, 100).has_value());
  store(memory, out, 40);
  store(memory, out + 50, 50);
  EXPECT_FALSE(memory.check_written(out, 40).has_value());
  EXPECT_FALSE(memory.check_written(out + 50, 50).has_value());
  EXPECT_FALSE(memory.check_written(out + 45, 0).has_value());
  const std::optional<Defect> defect = memory.check_written(out + 30, 40);
  ASSERT_TRUE(defect.has_value());
  EXPECT_EQ(defect->kind, DefectKind::not_written);
  EXPECT_EQ(defect->detail, "byte 40 of 100 of 'rows' was to be written, and no launch did");
  // Two launches may write one byte; a step later nothing is written.
  store(memory, out, 100);
  EXPECT_FALSE(memory.check_written(out, 100).has_value());
  memory.begin_step();
  EXPECT_TRUE(memory.check_written(out, 1).has_value());
}

TEST(GlobalMemory, ChecksOutputsAlone) {
  GlobalMemory memory;
  std::byte* const out = memory.allocate(100, Use::output, "rows");
  std::byte* const cache = memory.allocate(100, Use::read_write, "cache");
  EXPECT_THROW(memory.check_written(out + 50, 51), std::invalid_argument);
  EXPECT_THROW(memory.check_written(cache, 1), std::invalid_argument);
}

}  // namespace
}  // namespace kvcheck::kernels::simt
