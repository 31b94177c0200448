// Banks and sectors of single accesses, worked out by hand; tests of whole kernels are in
// counters_test.cpp.
#include "kernels/simt/access_cost.h"

#include <functional>

#include <gtest/gtest.h>

namespace kvcheck::kernels::simt {
namespace {

WarpAccess access(std::uint32_t lanes, std::uint8_t bytes,
                  const std::function<std::uint64_t(std::uint64_t)>& address) {
  WarpAccess result;
  result.lanes = lanes;
  for (std::size_t lane = 0; lane < 32; ++lane) {
    result.address[lane] = address(lane);
    result.bytes[lane] = bytes;
  }
  return result;
}

TEST(AccessCost, NoLaneCostsNothing) {
  const WarpAccess none = access(0, 4, [](auto lane) { return lane; });
  EXPECT_EQ(bank_conflicts(none), 0);
  EXPECT_EQ(transfer(none).bytes, 0);
  EXPECT_EQ(transfer(none).sectors, 0);
}

TEST(AccessCost, OneWordIsGivenToAllLanes) {
  EXPECT_EQ(bank_conflicts(access(~0u, 4, [](auto) { return 64; })), 0);
  // Two words of one bank, each for half of the lanes.
  EXPECT_EQ(bank_conflicts(access(~0u, 4, [](auto lane) { return lane % 2 * 128; })), 1);
}

TEST(AccessCost, LanesThatAreNotThereTakeNoBank) {
  // Stride 32 words: three lanes of one bank.
  EXPECT_EQ(bank_conflicts(access(0x80008001u, 4, [](auto lane) { return lane * 128; })), 2);
}

TEST(AccessCost, WideLanesAreTakenInGroups) {
  // Lanes 0 and 16 share a bank and come in different groups of 16; with 4 bytes they conflict.
  const auto far = [](auto lane) { return lane == 16 ? 128 : lane == 0 ? 0 : 8; };
  EXPECT_EQ(bank_conflicts(access(0x00010001u, 8, far)), 0);
  EXPECT_EQ(bank_conflicts(access(0x00010001u, 4, far)), 1);
  // Lanes 0 and 8 with 16 bytes each.
  const auto near = [](auto lane) { return lane == 8 ? 128 : 0; };
  EXPECT_EQ(bank_conflicts(access(0x00000101u, 16, near)), 0);
  EXPECT_EQ(bank_conflicts(access(0x00000101u, 8, near)), 1);
}

TEST(AccessCost, SectorsBeginAtMultiplesOf32) {
  const auto at = [](std::uint64_t address) {
    return transfer(access(1, 16, [=](auto) { return address; }));
  };
  EXPECT_EQ(at(1024).sectors, 1);
  EXPECT_EQ(at(1040).sectors, 1);
  EXPECT_EQ(at(1041).sectors, 2);
  EXPECT_EQ(at(1041).bytes, 16);
}

TEST(AccessCost, BytesThatLanesShareCountOnce) {
  // Windows of 16 bytes every 4: 31 * 4 + 16 = 140 bytes in ceil(140 / 32) sectors.
  const Transfer moved = transfer(access(~0u, 16, [](auto lane) { return 4096 + lane * 4; }));
  EXPECT_EQ(moved.bytes, 140);
  EXPECT_EQ(moved.sectors, 5);
  // In any order of lanes.
  const Transfer mixed =
      transfer(access(~0u, 16, [](auto lane) { return 4096 + (lane * 13 % 32) * 4; }));
  EXPECT_EQ(mixed.bytes, 140);
  EXPECT_EQ(mixed.sectors, 5);
}

}  // namespace
}  // namespace kvcheck::kernels::simt
