// Decode on matrix units on the SIMT runtime: right numbers for every feature, no defect under any
// schedule, and what it costs in memory accesses.
#include <gtest/gtest.h>

#include "tests/kernels/cuda/fused_checks.h"

namespace kvcheck::kernels::device {
namespace {

/// Eight query heads to a KV head and three queries: two tiles of rows, the second not full.
FusedCase drafts() {
  FusedCase c;
  c.kernel = &KernelTable::decode_matrix;
  c.query_heads = 16;
  c.kv_heads = 2;
  c.entries = {{.live = 300, .origin = 297, .queries = 3, .capacity = 310}};
  return c;
}

TEST(DecodeMatrix, EveryInstantiation) {
  for (const Element element : {Element::f16, Element::bf16}) {
    for (const std::int32_t lanes : {64, 128}) {
      for (const std::uint32_t threads : {32U, 64U, 128U}) {
        SCOPED_TRACE(std::to_string(lanes) + " lanes, " + std::to_string(threads) + " threads");
        FusedCase c = drafts();
        c.element = element;
        c.threads = threads;
        c.head_size = c.value_head_size = lanes;
        expect_right_under_every_order(c);
      }
    }
  }
}

TEST(DecodeMatrix, HeadSizesThatFillNoTile) {
  for (const auto& [head, value] : {std::pair{8, 8}, {24, 56}, {72, 40}, {40, 128}, {120, 8}}) {
    FusedCase c = drafts();
    c.head_size = head;
    c.value_head_size = value;
    expect_right(c, {simt::Order::random, 3});
  }
}

TEST(DecodeMatrix, WindowsAndSplits) {
  for (const std::int64_t window : {-1, 0, 1, 33, 200}) {
    for (const std::int64_t splits : {0, 64, 256}) {
      FusedCase c = drafts();
      c.largest_query = 8;
      c.window = window;
      c.split_positions = splits;
      expect_right(c, {simt::Order::random, 7});
    }
  }
  FusedCase c = drafts();
  c.causal = false;
  c.right = 5;
  c.window = 50;
  c.entries[0].origin = 100;
  expect_right_under_every_order(c);
}

TEST(DecodeMatrix, MasksCapsAndSinks) {
  for (const MaskKind mask : {MaskKind::boolean, MaskKind::additive}) {
    FusedCase c = drafts();
    c.mask = mask;
    c.sinks = true;
    c.softcap = mask == MaskKind::boolean ? 3 : 0;
    c.split_positions = mask == MaskKind::boolean ? 128 : 0;
    expect_right_under_every_order(c);
  }
}

TEST(DecodeMatrix, RaggedEntriesAndEmptyRows) {
  FusedCase c = drafts();
  c.entries.push_back({.live = 0, .origin = 0, .queries = 2, .capacity = 4});
  c.entries.push_back({.live = 9, .origin = 8, .queries = 0, .capacity = 9});
  c.entries.push_back({.live = 1, .origin = -2, .queries = 3, .capacity = 8});
  c.entries.push_back(
      {.first_position = 211, .live = 33, .origin = 243, .queries = 1, .capacity = 40});
  for (const std::int64_t splits : {0, 64}) {
    c.split_positions = splits;
    expect_right_under_every_order(c);
  }
}

TEST(DecodeMatrix, InfiniteValuesReachOnlyRowsThatSeeThem) {
  for (const Element element : {Element::f16, Element::bf16}) {
    for (const std::int32_t lanes : {64, 128}) {
      FusedCase c = drafts();
      c.element = element;
      c.head_size = c.value_head_size = lanes;
      c.infinite_position = 298;
      expect_right_under_every_order(c);
      c.mask = MaskKind::boolean;
      expect_right(c, {simt::Order::random, 3});
    }
  }
}

TEST(DecodeMatrix, ReadsEachRowOfTheBandOnce) {
  for (const std::int32_t lanes : {64, 128}) {
    FusedCase c = drafts();
    c.head_size = c.value_head_size = lanes;
    c.window = 1000;
    c.entries = {{.live = 1200, .origin = 1199, .queries = 1, .capacity = 1200}};
    const FusedRun run = run_fused(c);
    EXPECT_EQ(difference(c, run), "");
    const double least = 1000.0 * 2 * 2 * lanes * 2 / 32;
    EXPECT_LE(static_cast<double>(run.counters.global_load_sectors), 1.05 * least) << lanes;
    EXPECT_GE(static_cast<double>(run.counters.global_load_sectors), least);
    EXPECT_EQ(run.counters.bank_conflicts, 0);
    EXPECT_GT(run.counters.matrix_products, 0);
  }
}

}  // namespace
}  // namespace kvcheck::kernels::device
