// Warp collectives give what the PTX ISA says, under every order.
#include <cstdint>

#include <gtest/gtest.h>

#include "tests/kernels/simt/test_launch.h"

namespace kvcheck::kernels::device {
namespace {

struct Out {
  std::uint32_t* out;
};

KV_KERNEL void shuffles(Out p) {
  const unsigned lane = lane_index();
  std::uint32_t* const out = p.out + lane * 4;
  out[0] = shuffle(kAllLanes, lane * 10, 5);
  out[1] = shuffle_xor(kAllLanes, lane * 10, 3);
  out[2] = shuffle_down(kAllLanes, lane * 10, 4);
  out[3] = shuffle_up(kAllLanes, lane * 10, 4);
}

TEST(Collectives, ShufflesRead) {
  for (const simt::Order order : simt::kAllOrders) {
    simt::TestQueue test({order, 3});
    std::uint32_t out[128] = {};
    launch(test.queue, shuffles, {.grid = {}, .threads = 32}, Out{out});
    EXPECT_TRUE(test.queue.take_defects().empty());
    for (std::uint32_t lane = 0; lane < 32; ++lane) {
      EXPECT_EQ(out[lane * 4], 50U);
      EXPECT_EQ(out[lane * 4 + 1], (lane ^ 3U) * 10);
      EXPECT_EQ(out[lane * 4 + 2], (lane + 4 < 32 ? lane + 4 : lane) * 10);
      EXPECT_EQ(out[lane * 4 + 3], (lane >= 4 ? lane - 4 : lane) * 10);
    }
  }
}

}  // namespace
}  // namespace kvcheck::kernels::device
