// Memory of the cache: zero, aligned, movable, of every size class.
#include <algorithm>
#include <cstdint>
#include <utility>

#include <gtest/gtest.h>

#include "kernels/cpu/arena.h"

namespace kvcheck::kernels {
namespace {

std::uintptr_t address(const Arena& arena) {
  return reinterpret_cast<std::uintptr_t>(arena.data());
}

TEST(Arena, IsZeroAlignedAndAsLargeAsAsked) {
  for (const std::size_t bytes :
       {std::size_t{1}, Arena::kMapped - 1, Arena::kMapped, Arena::kHugePage - 1, Arena::kHugePage,
        3 * Arena::kHugePage + 5}) {
    Arena arena(bytes);
    EXPECT_EQ(arena.size(), bytes);
    EXPECT_EQ(address(arena) % Arena::kAlignment, 0U) << bytes;
    if (bytes >= Arena::kHugePage) {
      EXPECT_EQ(address(arena) % Arena::kHugePage, 0U) << bytes;
    }
    EXPECT_TRUE(std::all_of(arena.data(), arena.data() + bytes,
                            [](std::byte byte) { return byte == std::byte{0}; }));
    arena.data()[bytes - 1] = std::byte{7};
  }
}

TEST(Arena, LiesAsTheHeapPutsItWhereNoAlignmentIsAskedFor) {
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{100}, Arena::kMapped}) {
    Arena arena(bytes, Arena::kUnaligned);
    EXPECT_EQ(arena.size(), bytes);
    EXPECT_EQ(address(arena) % Arena::kUnaligned, 0U);
    EXPECT_TRUE(std::all_of(arena.data(), arena.data() + bytes,
                            [](std::byte byte) { return byte == std::byte{0}; }));
    arena.data()[0] = std::byte{1};
    const Arena moved(std::move(arena));  // Gives the block back as it was taken.
    EXPECT_EQ(moved.data()[0], std::byte{1});
    arena = Arena(200);  // NOLINT(bugprone-use-after-move)
    EXPECT_EQ(address(arena) % Arena::kAlignment, 0U);
  }
}

TEST(Arena, OfNothingHoldsNothing) {
  const Arena arena(0);
  EXPECT_EQ(arena.size(), 0U);
  EXPECT_EQ(arena.data(), nullptr);
}

TEST(Arena, MovesItsMemoryAndLeavesNothingBehind) {
  for (const std::size_t bytes : {std::size_t{100}, Arena::kHugePage}) {
    Arena first(bytes);
    std::byte* const data = first.data();
    Arena second(std::move(first));
    EXPECT_EQ(second.data(), data);
    EXPECT_EQ(first.data(), nullptr);  // NOLINT(bugprone-use-after-move)
    EXPECT_EQ(first.size(), 0U);
    Arena third(10);
    third = std::move(second);
    EXPECT_EQ(third.data(), data);
    EXPECT_EQ(third.size(), bytes);
    EXPECT_EQ(second.size(), 0U);  // NOLINT(bugprone-use-after-move)
    third.data()[0] = std::byte{1};
  }
}

}  // namespace
}  // namespace kvcheck::kernels
