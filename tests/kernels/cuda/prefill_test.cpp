// Prefill on the SIMT runtime: right numbers for every feature, no defect under any schedule, and
// the same bits whatever the cache, the step and the company.
#include <gtest/gtest.h>

#include "tests/kernels/cuda/fused_checks.h"

namespace kvcheck::kernels::device {
namespace {

/// 150 positions, the last 80 of them queries, in a cache with dead rows behind them.
FusedCase chunk() {
  FusedCase c;
  c.entries = {{.live = 150, .origin = 70, .queries = 80, .capacity = 160}};
  return c;
}

TEST(Prefill, Causal) { expect_right_under_every_order(chunk()); }

TEST(Prefill, EveryShapeOfBlocksAndElement) {
  for (const Element element : {Element::f16, Element::bf16}) {
    for (const std::uint32_t threads : {32U, 64U, 128U}) {
      for (const std::int32_t lanes : {64, 128, 256}) {
        SCOPED_TRACE(std::to_string(threads) + " threads, " + std::to_string(lanes) + " lanes");
        FusedCase c = chunk();
        c.element = element;
        c.threads = threads;
        c.head_size = c.value_head_size = lanes;
        c.scale = 0.125F;
        expect_right(c, {simt::Order::random, threads + static_cast<std::uint64_t>(lanes)});
      }
    }
  }
}

TEST(Prefill, WideBlocksUnderEveryOrder) {
  FusedCase c = chunk();
  c.head_size = c.value_head_size = 128;
  c.entries[0].live = 90;
  c.entries[0].origin = 20;
  c.entries[0].queries = 70;
  expect_right_under_every_order(c);
}

TEST(Prefill, HeadSizesThatFillNoTile) {
  for (const auto& [head, value] : {std::pair{8, 8}, {24, 56}, {72, 40}, {40, 136}, {248, 8}}) {
    FusedCase c = chunk();
    c.head_size = head;
    c.value_head_size = value;
    expect_right(c, {simt::Order::random, 3});
  }
}

TEST(Prefill, GroupsShareTheirKeys) {
  for (const auto& [query_heads, kv_heads] : {std::pair{4, 4}, {6, 2}, {8, 1}}) {
    FusedCase c = chunk();
    c.query_heads = query_heads;
    c.kv_heads = kv_heads;
    c.entries[0].queries = 21;
    c.entries[0].origin = 129;
    expect_right_under_every_order(c);
  }
}

TEST(Prefill, Windows) {
  for (const std::int64_t window : {0, 1, 30, 64, 100}) {
    FusedCase c = chunk();
    c.window = window;
    SCOPED_TRACE(window);
    expect_right_under_every_order(c);
  }
  FusedCase c = chunk();
  c.window = INT64_MAX;
  expect_right(c);
}

TEST(Prefill, NotCausal) {
  for (const std::int64_t window : {-1, 0, 17}) {
    for (const std::int64_t right :
         {std::int64_t{-1}, std::int64_t{0}, std::int64_t{9}, INT64_MAX}) {
      FusedCase c = chunk();
      c.causal = false;
      c.window = window;
      c.right = right;
      SCOPED_TRACE(std::to_string(window) + " " + std::to_string(right));
      expect_right(c, {simt::Order::priority, 5});
    }
  }
}

TEST(Prefill, QueriesThatSeeNothingAreZero) {
  FusedCase c = chunk();
  c.entries = {{.live = 30, .origin = -20, .queries = 50, .capacity = 32},
               {.live = 0, .origin = 0, .queries = 3, .capacity = 8}};
  for (const bool sinks : {false, true}) {
    c.sinks = sinks;
    const FusedRun run = run_fused(c, {simt::Order::random, 2});
    EXPECT_TRUE(run.defects.empty()) << run.first_defect();
    EXPECT_EQ(difference(c, run), "");
    EXPECT_EQ(run.bits[0], 0);
  }
}

TEST(Prefill, SinksAndCaps) {
  FusedCase c = chunk();
  c.query_heads = 4;
  c.kv_heads = 2;
  c.entries[0].queries = 30;
  c.entries[0].origin = 120;
  c.sinks = true;
  expect_right_under_every_order(c);
  c.softcap = 1.5F;
  expect_right_under_every_order(c);
}

TEST(Prefill, Masks) {
  for (const MaskKind kind : {MaskKind::boolean, MaskKind::additive}) {
    for (const bool of_heads : {false, true}) {
      FusedCase c = chunk();
      c.mask = kind;
      c.mask_of_heads = of_heads;
      c.mask_of_entries = !of_heads;
      c.query_heads = 2;
      c.kv_heads = 1;
      c.mask_columns = of_heads ? 0 : 133;  // Positions behind have no column.
      c.window = of_heads ? 90 : -1;
      c.entries.push_back({.live = 20, .origin = 5, .queries = 15, .capacity = 20});
      expect_right_under_every_order(c);
    }
  }
}

TEST(Prefill, ScalesThatAreNotPositive) {
  for (const float scale : {0.0F, -0.25F}) {
    FusedCase c = chunk();
    c.scale = scale;
    c.window = 50;
    expect_right(c);
  }
}

TEST(Prefill, RaggedEntries) {
  FusedCase c = chunk();
  c.query_heads = 2;
  c.entries = {{.live = 70, .origin = 0, .queries = 70, .capacity = 80},
               {.first_position = 37, .live = 60, .origin = 90, .queries = 7, .capacity = 64},
               {.live = 9, .origin = 9, .queries = 0, .capacity = 16},
               {.live = 65, .origin = 1, .queries = 64, .capacity = 65}};
  expect_right_under_every_order(c);
}

TEST(Prefill, LargeLogits) {
  FusedCase c = chunk();
  c.largest_query = 60;  // The largest key decides nearly alone, and maxima rise all the time.
  expect_right(c);
}

/// Outputs of the queries of an entry, as bits.
std::vector<std::uint16_t> bits_of(const FusedCase& c, const FusedRun& run, std::size_t entry,
                                   std::int64_t first_query) {
  const auto begin = c.output_row(entry, first_query, 0) * c.value_head_size;
  const auto end = c.output_row(entry, c.entries[entry].queries, 0) * c.value_head_size;
  return {run.bits.begin() + begin, run.bits.begin() + end};
}

TEST(Prefill, WindowedCacheEqualsFullCacheBitForBit) {
  FusedCase full = chunk();
  full.window = 40;
  for (const bool masked : {false, true}) {
    full.softcap = masked ? 20.0F : 0.0F;
    const std::vector<std::uint16_t> expected = bits_of(full, run_fused(full), 0, 0);
    for (const std::int64_t first : {1, 30, 31}) {
      FusedCase windowed = full;
      windowed.entries = {{.first_position = first,
                           .live = 150 - first,
                           .origin = 70,
                           .queries = 80,
                           .capacity = 150 - first}};
      EXPECT_EQ(bits_of(windowed, run_fused(windowed), 0, 0), expected) << first;
    }
  }
}

TEST(Prefill, StepsAndShapesChangeNoBit) {
  for (const std::int32_t lanes : {64, 128, 256}) {
    FusedCase whole = chunk();
    whole.head_size = whole.value_head_size = lanes;
    whole.sinks = true;
    const std::vector<std::uint16_t> expected = bits_of(whole, run_fused(whole), 0, 37);
    for (const std::uint32_t threads : {32U, 64U, 128U}) {
      FusedCase chunk = whole;
      chunk.threads = threads;
      chunk.entries[0].origin += 37;
      chunk.entries[0].queries -= 37;
      EXPECT_EQ(bits_of(chunk, run_fused(chunk), 0, 0), expected) << threads << " " << lanes;
    }
  }
}

TEST(Prefill, CompanyChangesNoBit) {
  FusedCase alone = chunk();
  alone.query_heads = 4;
  alone.kv_heads = 2;
  alone.entries[0].queries = 5;
  const std::vector<std::uint16_t> expected = bits_of(alone, run_fused(alone), 0, 0);
  FusedCase company = alone;
  company.entries.push_back({.live = 200, .origin = 100, .queries = 100, .capacity = 200});
  EXPECT_EQ(bits_of(company, run_fused(company), 0, 0), expected);
}

TEST(Prefill, RunsRepeatUnderEveryOrder) {
  FusedCase c = chunk();
  c.window = 70;
  const FusedRun first = run_fused(c);
  for (const simt::Order order : kAllOrders) EXPECT_EQ(run_fused(c, {order, 11}).bits, first.bits);
}

TEST(Prefill, NoBankConflictsAndNoSectorInVain) {
  for (const std::int32_t lanes : {64, 128, 256}) {
    FusedCase c = chunk();
    c.head_size = c.value_head_size = lanes;
    const FusedRun run = run_fused(c);
    EXPECT_EQ(run.counters.bank_conflicts, 0) << lanes;
    EXPECT_GT(run.counters.shared_accesses, 0);
    EXPECT_EQ(run.counters.global_store_sectors * 32, run.counters.global_store_bytes);
    EXPECT_LE(static_cast<double>(run.counters.global_load_sectors * 32),
              1.05 * static_cast<double>(run.counters.global_load_bytes));
  }
}

TEST(Prefill, TilesOutsideTheBandAreNotLoaded) {
  FusedCase c = chunk();
  c.query_heads = c.kv_heads = 1;
  c.entries = {{.live = 640, .origin = 576, .queries = 64, .capacity = 640}};
  c.window = 64;
  const FusedRun run = run_fused(c);
  EXPECT_EQ(difference(c, run), "");
  // One block; positions 513 to 639 lie in two tiles: 4 warps make 4 x 8 products of keys and 4 x 8
  // of values of each.
  EXPECT_EQ(run.counters.matrix_products, 2 * 4 * (4 * 8 + 4 * 8));
  // 127 rows of keys and of values, 64 of queries, 128 bytes each, and what describes the entry.
  EXPECT_LE(run.counters.global_load_bytes, (2 * 127 + 64) * 128 + 2048);
}

}  // namespace
}  // namespace kvcheck::kernels::device
