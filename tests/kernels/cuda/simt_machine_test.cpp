// Memory of the machine, and its defects as one failure.
#include "kernels/cuda/simt_machine.h"

#include <array>
#include <string>

#include <gtest/gtest.h>

#include "kernels/cuda/planted.h"

namespace kvcheck::kernels::device {
namespace {

/// Stores `rows` rows of two f32 in a cache of one head.
void append(Machine& machine, std::int64_t rows) {
  const std::vector<float> numbers(static_cast<std::size_t>(2 * rows), 0.5F);
  const DeviceBuffer key(machine, 8 * rows, Use::read_write, "key cache");
  const DeviceBuffer value(machine, 8 * rows, Use::read_write, "value cache");
  const AppendEntry one{key.data(), value.data(), 8 * rows, 8 * rows, 0, rows};
  const DeviceBuffer entries = uploaded(machine, std::span(&one, 1), "appends");
  const DeviceBuffer fresh = uploaded(machine, std::span(numbers), "new rows");
  AppendParameters parameters{};
  parameters.entries = entries.as<const AppendEntry>();
  parameters.key = parameters.value = fresh.data();
  parameters.tokens = rows;
  parameters.batch = parameters.kv_heads = 1;
  parameters.head_size = parameters.value_head_size = 2;
  machine.kernels().append(machine.queue(), parameters);
}

TEST(SimtMachine, MemoryHoldsWhatIsWritten) {
  SimtMachine machine(simt_kernels(), {});
  std::byte* const data = machine.allocate(3, Use::read_write, "three bytes");
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(data) % 256, 0u);
  const std::array<std::byte, 3> given{std::byte{1}, std::byte{2}, std::byte{3}};
  machine.write(data, given);
  std::array<std::byte, 3> found{};
  machine.read(data, found);
  EXPECT_EQ(found, given);
  machine.write(data, {});
  machine.read(data, {});
  machine.release(data);
}

TEST(SimtMachine, AHealthyLaunchIsNoFailure) {
  const KernelTable table = simt_kernels();
  SimtMachine machine(table, {simt::Order::random, 3});
  append(machine, 3);
  EXPECT_FALSE(machine.finish().has_value());
  // Keys and values of 3 rows of two f32.
  EXPECT_EQ(machine.counters().global_store_bytes, 48);
}

TEST(SimtMachine, ADefectIsAFailureThatNamesItsPlaceOnce) {
  const KernelTable table = planted_kernels(Fault::append_element_too_many);
  SimtMachine machine(table, {});
  append(machine, 3);
  const auto failure = machine.finish();
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->kind, Failure::Kind::defect);
  EXPECT_NE(failure->detail.find("out of bounds at kernels/cuda/append.cuh:"), std::string::npos)
      << failure->detail;
  EXPECT_NE(failure->detail.find("cache"), std::string::npos) << failure->detail;
  EXPECT_FALSE(machine.finish().has_value());
}

TEST(SimtMachine, ManyDefectsAreCounted) {
  const KernelTable table = planted_kernels(Fault::append_element_too_many);
  SimtMachine machine(table, {});
  append(machine, 3);
  const std::string once = machine.finish().value().detail;
  const auto parts = [](const std::string& text) {
    std::int64_t count = 1;
    for (std::size_t at = text.find("; "); at != text.npos; at = text.find("; ", at + 1)) ++count;
    return count;
  };
  ASSERT_LE(parts(once), 3) << once;
  for (int launch = 0; launch < 5; ++launch) append(machine, 3);
  const std::string often = machine.finish().value().detail;
  EXPECT_EQ(parts(often), 4) << often;
  const std::int64_t more = 5 * parts(once) - 3;
  EXPECT_TRUE(often.ends_with("; and " + std::to_string(more) + " more")) << often;
}

TEST(SimtMachine, TellsTheLastStoreWhereStoresAreRecorded) {
  SimtMachine machine(simt_kernels(), {});
  machine.record_stores();
  const std::vector<float> numbers(4, 0.5F);
  const DeviceBuffer key(machine, 16, Use::read_write, "key cache");
  const DeviceBuffer value(machine, 16, Use::read_write, "value cache");
  machine.write(key.data(), std::as_bytes(std::span(numbers)));
  const AppendEntry one{key.data(), value.data(), 16, 16, 0, 1};
  const DeviceBuffer entries = uploaded(machine, std::span(&one, 1), "appends");
  const DeviceBuffer fresh = uploaded(machine, std::span<const float>(numbers), "new rows");
  AppendParameters parameters{};
  parameters.entries = entries.as<const AppendEntry>();
  parameters.key = parameters.value = fresh.data();
  parameters.tokens = parameters.batch = parameters.kv_heads = 1;
  parameters.head_size = parameters.value_head_size = 2;
  machine.kernels().append(machine.queue(), parameters);
  EXPECT_FALSE(machine.finish().has_value());
  const std::string store = machine.last_store(value.data());
  EXPECT_EQ(store.find("stored at kernels/cuda/append.cuh:"), 0u) << store;
  EXPECT_NE(store.find(" of block (0,0,0) of append_kernel (kernels/cuda/append.cuh:"),
            std::string::npos)
      << store;
  EXPECT_EQ(machine.last_store(key.data() + 8), "stored by no kernel");
  machine.write(value.data(), std::as_bytes(std::span(numbers)));
  EXPECT_EQ(machine.last_store(value.data()), "stored by no kernel");
  EXPECT_EQ(SimtMachine(simt_kernels(), {}).last_store(nullptr), "");
}

TEST(SimtMachine, ABufferIsReleasedWithItsOwner) {
  SimtMachine machine(simt_kernels(), {});
  DeviceBuffer buffer(machine, 16, Use::scratch, "scratch");
  ASSERT_NE(buffer.data(), nullptr);
  EXPECT_EQ(buffer.bytes(), 16);
  DeviceBuffer other = std::move(buffer);
  EXPECT_EQ(buffer.data(), nullptr);  // NOLINT: a moved-from buffer is an empty one.
  EXPECT_EQ(other.bytes(), 16);
  const DeviceBuffer none(machine, 0, Use::scratch, "nothing");
  EXPECT_EQ(none.data(), nullptr);
  EXPECT_EQ(none.bytes(), 0);
}

}  // namespace
}  // namespace kvcheck::kernels::device
