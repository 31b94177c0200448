// Unfused attention against plain loops in double; hidden keys, windowed caches and repeated runs.
#include "tests/kernels/cuda/unfused_case.h"

namespace kvcheck::kernels::device {
namespace {

TEST(Unfused, AnswersWhatPlainLoopsAnswerUnderEveryOrder) {
  int number = 0;
  for (const AttentionCase& one : attention_cases()) {
    std::vector<std::byte> bits;
    for (const simt::Order order : kAllOrders) {
      const AttentionOutcome found = run_unfused(one, simt_kernels(), order);
      expect_none(found.defects);
      EXPECT_EQ(difference(one, found), "") << "case " << number << ", " << to_string(order);
      if (bits.empty()) bits = found.bits;
      EXPECT_TRUE(found.bits == bits) << "case " << number << ", " << to_string(order);
    }
    ++number;
  }
}

TEST(Unfused, QueriesThatSeeNothingGetZero) {
  AttentionCase one;
  one.entries = {{0, 0, 0, 2, 1}, {4, 3, 2, 3, 4}, {0, 5, -2, 2, 5}};
  one.sinks = true;
  const AttentionOutcome found = run_unfused(one, simt_kernels(), simt::Order::random);
  expect_none(found.defects);
  const std::size_t row = 2 * 8;  // Two heads of 8 lanes; three queries for each entry.
  for (const std::size_t number : {0, 1, 3, 4, 6, 7}) {  // The third query of entry 1 sees row 0.
    for (std::size_t i = 0; i < row; ++i) EXPECT_EQ(found.output[number * row + i], 0) << number;
  }
  EXPECT_EQ(difference(one, found), "");
}

TEST(Unfused, AWindowedCacheGivesTheBitsOfAFullOne) {
  for (const std::int64_t window : {1, 7, 40, 150}) {
    for (const MaskKind mask : {MaskKind::none, MaskKind::additive}) {
      AttentionCase full;
      full.window = window;
      full.mask = mask;
      full.launch.threads = 64;
      full.entries = {{0, 200, 197, 3, 201}, {0, 150, 149, 1, 150}};
      AttentionCase windowed = full;
      for (EntryCase& e : windowed.entries) {
        const std::int64_t first = std::max<std::int64_t>(0, e.origin - window + 1);
        e = {first, e.live - first, e.origin, e.queries, e.live - first + 2};
      }
      const AttentionOutcome expected = run_unfused(full, simt_kernels(), simt::Order::lockstep);
      const AttentionOutcome found = run_unfused(windowed, simt_kernels(), simt::Order::random);
      expect_none(found.defects);
      EXPECT_TRUE(found.bits == expected.bits) << "window " << window;
    }
  }
}

TEST(Unfused, AnEntryAnswersTheSameInAnyCompany) {
  AttentionCase alone;
  alone.entries = {{3, 60, 60, 3, 62}};
  AttentionCase more = alone;
  more.entries.push_back({0, 90, 80, 9, 90});
  const AttentionOutcome expected = run_unfused(alone, simt_kernels(), simt::Order::lockstep);
  const AttentionOutcome found = run_unfused(more, simt_kernels(), simt::Order::starve);
  EXPECT_TRUE(std::equal(expected.bits.begin(), expected.bits.end(), found.bits.begin()));
}

TEST(Unfused, EveryBlockSizeGivesTheSameWithinTheBound) {
  for (const std::uint32_t threads : {32u, 96u, 256u, 1024u}) {
    AttentionCase one;
    one.launch.threads = threads;
    one.entries = {{0, 70, 69, 1, 70}};
    const AttentionOutcome found = run_unfused(one, simt_kernels(), simt::Order::priority);
    expect_none(found.defects);
    EXPECT_EQ(difference(one, found), "") << threads;
  }
}

}  // namespace
}  // namespace kvcheck::kernels::device
