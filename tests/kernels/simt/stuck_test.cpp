// Threads that wait for what never comes: kind, places and threads of the defect.
#include <cstdint>

#include "tests/kernels/simt/test_launch.h"

namespace kvcheck::kernels::device {
namespace {

using simt::DefectKind;

struct Nothing {
  std::uint32_t unused = 0;
};

simt::Defect defect_of(void (*kernel)(Nothing), simt::Order order) {
  simt::TestQueue test({order, 6});
  launch(test.queue, kernel, {.grid = {2, 1, 1}, .threads = 64, .shared_bytes = 1024}, Nothing{});
  return simt::only_defect(test.queue);
}

/// Whichever of the two lines waits for the other.
void expect(const simt::Defect& defect, DefectKind kind, int line, int other_line) {
  EXPECT_EQ(defect.kind, kind) << defect.sentence();
  EXPECT_EQ(defect.place.file, "tests/kernels/simt/stuck_test.cpp");
  EXPECT_EQ(defect.other.file, "tests/kernels/simt/stuck_test.cpp");
  EXPECT_TRUE((defect.place.line == line && defect.other.line == other_line) ||
              (defect.place.line == other_line && defect.other.line == line))
      << defect.sentence();
}

constexpr int kMasks = __LINE__ + 4;
KV_KERNEL void masks_differ(Nothing) {
  if (lane_index() < 16) {
    // The upper half names all lanes, the lower half itself and one more.
    sync_warp(0x0001ffffU);
  } else {
    sync_warp(0xffffffffU);
  }
}

TEST(Stuck, MasksThatDiffer) {
  for (const simt::Order order : simt::kAllOrders) {
    expect(defect_of(masks_differ, order), DefectKind::warp_mask, kMasks, kMasks + 2);
  }
}

constexpr int kOperations = __LINE__ + 3;
KV_KERNEL void operations_differ(Nothing) {
  if (lane_index() % 2 == 0) {
    ballot(kAllLanes, true);
  } else {
    shuffle_xor(kAllLanes, 1U, 1);
  }
}

TEST(Stuck, OperationsThatDiffer) {
  for (const simt::Order order : simt::kAllOrders) {
    const simt::Defect defect = defect_of(operations_differ, order);
    expect(defect, DefectKind::warp_mask, kOperations, kOperations + 2);
    EXPECT_NE(defect.detail.find("ballot with mask 0xffffffff"), std::string::npos);
    EXPECT_NE(defect.detail.find("shuffle_xor with mask 0xffffffff"), std::string::npos);
  }
}

constexpr int kBarrier = __LINE__ + 3;
KV_KERNEL void half_at_a_barrier(Nothing) {
  if (lane_index() < 16) {
    sync_block();
  } else {
    sync_warp();
  }
}

TEST(Stuck, ABarrierAgainstAWarp) {
  for (const simt::Order order : simt::kAllOrders) {
    const simt::Defect defect = defect_of(half_at_a_barrier, order);
    expect(defect, DefectKind::deadlock, kBarrier, kBarrier + 2);
    EXPECT_NE(defect.detail.find("which waits at a barrier of the block"), std::string::npos);
  }
}

constexpr int kMatrix = __LINE__ + 5;
KV_KERNEL void half_a_product(Nothing) {
  float d[4] = {};
  const unsigned a[4] = {}, b[2] = {};
  if (lane_index() < 16) {
    multiply_add<F16>(d, a, b);
  } else {
    sync_block();
  }
}

TEST(Stuck, AProductOfHalfAWarp) {
  for (const simt::Order order : simt::kAllOrders) {
    expect(defect_of(half_a_product, order), DefectKind::matrix_operands, kMatrix, kMatrix + 2);
  }
}

constexpr int kTwoProducts = __LINE__ + 5;
KV_KERNEL void product_at_two_places(Nothing) {
  float d[4] = {};
  const unsigned a[4] = {}, b[2] = {};
  if (lane_index() < 16) {
    multiply_add<BF16>(d, a, b);
  } else {
    multiply_add<BF16>(d, a, b);
  }
}

TEST(Stuck, AProductAtTwoPlaces) {
  for (const simt::Order order : simt::kAllOrders) {
    expect(defect_of(product_at_two_places, order), DefectKind::matrix_operands, kTwoProducts,
           kTwoProducts + 2);
  }
}

constexpr int kLoad = __LINE__ + 5;
KV_KERNEL void load_after_exit(Nothing) {
  KV_SHARED_BYTES(shared);
  if (lane_index() == 0) return;
  unsigned r[2];
  load_matrix_x2(r, shared + 16 * lane_index());
}

TEST(Stuck, AMatrixWithoutLanesThatHaveExited) {
  for (const simt::Order order : simt::kAllOrders) {
    const simt::Defect defect = defect_of(load_after_exit, order);
    EXPECT_EQ(defect.kind, DefectKind::matrix_operands);
    EXPECT_EQ(defect.place.line, kLoad);
    EXPECT_EQ(defect.detail, "load_matrix_x2 takes all lanes, and 1 have exited");
  }
}

// Not a deadlock: lanes of one warp wait for each other in a chain.
KV_KERNEL void chain(Nothing) {
  const unsigned lane = lane_index();
  if (lane > 0) sync_warp(3U << (lane - 1));
  if (lane < 31) sync_warp(3U << lane);
}

TEST(Stuck, AChainOfMasksIsNoDeadlock) {
  for (const simt::Order order : simt::kAllOrders) {
    simt::TestQueue test({order, 8});
    launch(test.queue, chain, {.grid = {}, .threads = 64}, Nothing{});
    EXPECT_EQ(simt::sentences_of(test.queue.take_defects()), std::vector<std::string>{});
  }
}

}  // namespace
}  // namespace kvcheck::kernels::device
