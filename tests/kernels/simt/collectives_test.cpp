// Warp collectives give what the PTX ISA says, under every order, and misuse is named.
#include <cstdint>

#include "tests/kernels/simt/test_launch.h"

namespace kvcheck::kernels::device {
namespace {

constexpr const char* kFile = "tests/kernels/simt/collectives_test.cpp";

struct Out {
  std::uint32_t* out;  ///< [threads][8]
};

template <class Check>
void under_all_orders(void (*kernel)(Out), Check check) {
  for (const simt::Order order : simt::kAllOrders) {
    for (const std::uint64_t seed : {1U, 2U}) {
      simt::TestQueue test({order, seed});
      std::uint32_t out[64][8] = {};
      launch(test.queue, kernel, {.grid = {}, .threads = 64}, Out{&out[0][0]});
      EXPECT_EQ(simt::sentences_of(test.queue.take_defects()), std::vector<std::string>{});
      for (std::uint32_t thread = 0; thread < 64; ++thread) check(thread, out[thread]);
    }
  }
}

KV_KERNEL void shuffles(Out p) {
  const unsigned value = thread_index() * 10;
  const unsigned lane = lane_index();
  std::uint32_t* const out = p.out + thread_index() * 8;
  out[0] = shuffle(kAllLanes, value, 5);
  out[1] = shuffle(kAllLanes, value, (lane + 1) % 32);  // Each its own source.
  out[2] = shuffle(kAllLanes, value, 34);               // Of 32 lanes that is lane 2.
  out[3] = shuffle_xor(kAllLanes, value, 3);
  out[4] = shuffle_down(kAllLanes, value, 4);
  out[5] = shuffle_up(kAllLanes, value, 4);
  const float half = shuffle_xor(kAllLanes, static_cast<float>(lane) / 2, 16);
  out[6] = static_cast<std::uint32_t>(half * 2);
}

TEST(Collectives, ShufflesReadTheirSource) {
  under_all_orders(shuffles, [](std::uint32_t thread, const std::uint32_t* out) {
    const std::uint32_t first = thread / 32 * 32, lane = thread % 32;
    EXPECT_EQ(out[0], (first + 5) * 10);
    EXPECT_EQ(out[1], (first + (lane + 1) % 32) * 10);
    EXPECT_EQ(out[2], (first + 2) * 10);
    EXPECT_EQ(out[3], (first + (lane ^ 3U)) * 10);
    EXPECT_EQ(out[4], (lane + 4 < 32 ? thread + 4 : thread) * 10);
    EXPECT_EQ(out[5], (lane >= 4 ? thread - 4 : thread) * 10);
    EXPECT_EQ(out[6], lane ^ 16U);
  });
}

KV_KERNEL void votes(Out p) {
  const unsigned lane = lane_index();
  std::uint32_t* const out = p.out + thread_index() * 8;
  out[0] = ballot(kAllLanes, lane % 3 == 0);
  out[1] = any_of(kAllLanes, lane == 7);
  out[2] = any_of(kAllLanes, lane == 32);
  out[3] = all_of(kAllLanes, lane < 32);
  out[4] = all_of(kAllLanes, lane != 7);
  out[5] = match_any(kAllLanes, lane / 16);
}

TEST(Collectives, VotesCountTheLanesThatSayYes) {
  under_all_orders(votes, [](std::uint32_t thread, const std::uint32_t* out) {
    EXPECT_EQ(out[0], 0x49249249U);  // Lanes 0, 3, 6, ..., 30.
    EXPECT_EQ(out[1], 1U);
    EXPECT_EQ(out[2], 0U);
    EXPECT_EQ(out[3], 1U);
    EXPECT_EQ(out[4], 0U);
    EXPECT_EQ(out[5], thread % 32 < 16 ? 0x0000ffffU : 0xffff0000U);
  });
}

// The halves of a warp go different ways and meet again.
KV_KERNEL void halves(Out p) {
  const unsigned lane = lane_index();
  std::uint32_t* const out = p.out + thread_index() * 8;
  if (lane < 16) {
    for (int i = 0; i < 3; ++i) sync_warp(0x0000ffffU);
    out[0] = ballot(0x0000ffffU, lane % 2 == 0);
  } else {
    out[0] = shuffle_xor(0xffff0000U, lane, 1);
  }
  sync_warp();
  out[1] = shuffle(kAllLanes, lane, 31 - lane);
}

TEST(Collectives, PartsOfAWarpMeetOnTheirOwn) {
  under_all_orders(halves, [](std::uint32_t thread, const std::uint32_t* out) {
    const std::uint32_t lane = thread % 32;
    EXPECT_EQ(out[0], lane < 16 ? 0x00005555U : lane ^ 1U);
    EXPECT_EQ(out[1], 31 - lane);
  });
}

simt::Defect defect_of(void (*kernel)(Out), simt::Order order = simt::Order::lockstep) {
  simt::TestQueue test({order, 1});
  std::uint32_t out[32][8] = {};
  launch(test.queue, kernel, {.grid = {}, .threads = 32}, Out{&out[0][0]});
  return simt::only_defect(test.queue);
}

constexpr int kOwnLaneLine = __LINE__ + 2;
KV_KERNEL void leaves_itself_out(Out p) {
  p.out[lane_index()] = shuffle_xor(0x0000ffffU, lane_index(), 1);
}

TEST(Collectives, ALaneIsInItsOwnMask) {
  for (const simt::Order order : simt::kAllOrders) {
    const simt::Defect defect = defect_of(leaves_itself_out, order);
    EXPECT_EQ(defect.kind, simt::DefectKind::warp_mask);
    EXPECT_EQ(defect.place.file, kFile);
    EXPECT_EQ(defect.place.line, kOwnLaneLine);
    EXPECT_GE(defect.thread, 16);
    EXPECT_EQ(defect.detail, "shuffle_xor with mask 0x0000ffff lacks the lane itself");
  }
}

constexpr int kOutsideLine = __LINE__ + 3;
KV_KERNEL void reads_outside(Out p) {
  if (lane_index() >= 16) return;
  p.out[lane_index()] = shuffle(0x0000ffffU, lane_index(), 20);
}

TEST(Collectives, TheSourceIsInsideTheMask) {
  const simt::Defect defect = defect_of(reads_outside);
  EXPECT_EQ(defect.kind, simt::DefectKind::warp_mask);
  EXPECT_EQ(defect.place.file, kFile);
  EXPECT_EQ(defect.place.line, kOutsideLine);
  EXPECT_EQ(defect.detail,
            "shuffle with mask 0x0000ffff reads from lane 20, which is outside the mask");
}

constexpr int kExitedLine = __LINE__ + 3;
KV_KERNEL void reads_from_the_dead(Out p) {
  if (lane_index() == 3) return;
  p.out[lane_index()] = shuffle(kAllLanes, lane_index(), 3);
}

TEST(Collectives, TheSourceHasNotExited) {
  for (const simt::Order order : simt::kAllOrders) {
    const simt::Defect defect = defect_of(reads_from_the_dead, order);
    EXPECT_EQ(defect.kind, simt::DefectKind::warp_mask);
    EXPECT_EQ(defect.place.line, kExitedLine);
    EXPECT_EQ(defect.detail, "shuffle with mask 0xffffffff reads from lane 3, which has exited");
  }
}

// Lanes that have exited are not waited for.
KV_KERNEL void goes_on_without(Out p) {
  if (lane_index() == 3) return;
  sync_warp();
  p.out[lane_index()] = ballot(kAllLanes, true);
}

TEST(Collectives, ExitedLanesAreNotWaitedFor) {
  for (const simt::Order order : simt::kAllOrders) {
    simt::TestQueue test({order, 4});
    std::uint32_t out[256] = {};
    launch(test.queue, goes_on_without, {.grid = {}, .threads = 32}, Out{out});
    EXPECT_EQ(simt::sentences_of(test.queue.take_defects()), std::vector<std::string>{});
    EXPECT_EQ(out[0], 0xfffffff7U);
  }
}

}  // namespace
}  // namespace kvcheck::kernels::device
