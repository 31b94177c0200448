// Decode on CUDA cores on the SIMT runtime: right numbers for every feature and instantiation, no
// defect under any schedule, and what it costs in memory accesses.
#include <gtest/gtest.h>

#include "kernels/cuda/takes.h"
#include "tests/kernels/cuda/fused_checks.h"

namespace kvcheck::kernels::device {
namespace {

/// One query behind 300 positions, in a cache with dead rows behind them.
FusedCase token() {
  FusedCase c;
  c.kernel = &KernelTable::decode;
  c.entries = {{.live = 300, .origin = 299, .queries = 1, .capacity = 310}};
  return c;
}

/// The same with four query heads to a KV head and three draft tokens: rows of several queries.
FusedCase drafts() {
  FusedCase c = token();
  c.query_heads = 8;
  c.kv_heads = 2;
  c.entries[0].origin = 297;
  c.entries[0].queries = 3;
  return c;
}

TEST(Decode, OneToken) { expect_right_under_every_order(token()); }

TEST(Decode, Drafts) { expect_right_under_every_order(drafts()); }

TEST(Decode, EveryInstantiation) {
  for (const Element element : {Element::f16, Element::bf16}) {
    for (const bool int8_cache : {false, true}) {
      for (const std::int32_t lanes : {64, 128, 256}) {
        for (const std::int32_t group : {1, 3, 8}) {
          SCOPED_TRACE(std::to_string(int8_cache) + " " + std::to_string(lanes) + " lanes, " +
                       std::to_string(group) + " rows");
          FusedCase c = token();
          c.element = element;
          c.int8_cache = int8_cache;
          c.per_channel = group == 3;
          c.head_size = c.value_head_size = lanes;
          c.scale = 0.125F;
          c.query_heads = group;
          expect_right(c, {simt::Order::random, 5});
        }
      }
    }
  }
}

TEST(Decode, EveryNumberOfWarps) {
  for (const std::uint32_t threads : {32U, 64U, 96U, 128U, 256U}) {
    FusedCase c = drafts();
    c.threads = threads;
    expect_right_under_every_order(c);
  }
}

TEST(Decode, HeadSizesThatFillNoTile) {
  for (const auto& [head, value] : {std::pair{8, 8}, {24, 56}, {72, 40}, {40, 136}, {248, 8}}) {
    FusedCase c = drafts();
    c.head_size = head;
    c.value_head_size = value;
    expect_right(c, {simt::Order::random, 3});
  }
  for (const auto& [head, value] : {std::pair{16, 48}, {80, 16}, {240, 144}}) {
    FusedCase c = drafts();
    c.int8_cache = c.per_channel = true;
    c.head_size = head;
    c.value_head_size = value;
    expect_right(c, {simt::Order::random, 4});
  }
}

TEST(Decode, Windows) {
  for (const std::int64_t window : {0, 1, 2, 33, 64, 200, 1000}) {
    for (const std::int64_t splits : {0, 64}) {
      FusedCase c = drafts();
      c.window = window;
      c.split_positions = splits;
      expect_right_under_every_order(c);
    }
  }
}

TEST(Decode, WithoutCausalityAndWithRightWindows) {
  for (const std::int64_t right : {-1, 0, 1, 40}) {
    FusedCase c = drafts();
    c.causal = false;
    c.right = right;
    c.window = 50;
    c.entries[0].origin = 100;
    c.split_positions = 96;
    expect_right_under_every_order(c);
  }
}

TEST(Decode, Masks) {
  for (const MaskKind mask : {MaskKind::boolean, MaskKind::additive}) {
    for (const bool of_each : {false, true}) {
      FusedCase c = drafts();
      c.mask = mask;
      c.mask_of_heads = c.mask_of_entries = of_each;
      c.mask_columns = of_each ? 0 : 290;
      c.element = of_each ? Element::f16 : Element::bf16;
      c.split_positions = of_each ? 128 : 0;
      expect_right_under_every_order(c);
    }
  }
}

TEST(Decode, CapsAndSinks) {
  for (const std::int64_t splits : {0, 64}) {
    FusedCase c = drafts();
    c.softcap = 3;
    c.scale = 1;
    c.sinks = true;
    c.split_positions = splits;
    expect_right_under_every_order(c);
  }
}

TEST(Decode, AnySplitSize) {
  for (const std::int64_t splits : {32, 64, 96, 256, 320, 1024}) {
    FusedCase c = drafts();
    c.largest_query = 8;
    c.split_positions = splits;
    expect_right(c, {simt::Order::random, 9});
    c.window = 70;
    expect_right(c, {simt::Order::random, 9});
  }
}

/// Entries that hold nothing, ask nothing, ask more than they hold, or begin somewhere.
FusedCase ragged() {
  FusedCase c = drafts();
  c.entries.push_back({.live = 0, .origin = 0, .queries = 2, .capacity = 4});
  c.entries.push_back({.live = 9, .origin = 8, .queries = 0, .capacity = 9});
  c.entries.push_back({.live = 1, .origin = -2, .queries = 3, .capacity = 8});
  c.entries.push_back(
      {.first_position = 211, .live = 33, .origin = 243, .queries = 1, .capacity = 40});
  return c;
}

TEST(Decode, RaggedEntriesAndEmptyRows) {
  for (const std::int64_t splits : {0, 64}) {
    for (const bool sinks : {false, true}) {
      FusedCase c = ragged();
      c.split_positions = splits;
      c.sinks = sinks;
      expect_right_under_every_order(c);
    }
  }
}

TEST(Decode, PositionsBeyond32Bits) {
  FusedCase c = drafts();
  c.entries[0].first_position = (std::int64_t{5} << 32) + 17;
  c.entries[0].origin += c.entries[0].first_position;
  c.window = 150;
  for (const std::int64_t splits : {0, 64}) {
    c.split_positions = splits;
    expect_right(c, {simt::Order::random, 2});
  }
}

TEST(Decode, InfiniteValuesReachOnlyRowsThatSeeThem) {
  FusedCase c = drafts();
  c.infinite_position = 298;
  expect_right_under_every_order(c);
}

TEST(Decode, ReadsEachRowOfTheBandOnce) {
  for (const bool int8_cache : {false, true}) {
    for (const std::int32_t lanes : {64, 128, 256}) {
      FusedCase c = token();
      c.query_heads = 8;
      c.kv_heads = 2;
      c.head_size = c.value_head_size = lanes;
      c.int8_cache = int8_cache;
      c.window = 1000;
      c.entries = {{.live = 1200, .origin = 1199, .queries = 1, .capacity = 1200}};
      const FusedRun run = run_fused(c);
      EXPECT_EQ(difference(c, run), "");
      const double least = 1000.0 * 2 * 2 * lanes * (int8_cache ? 1 : 2) / 32;
      EXPECT_LE(static_cast<double>(run.counters.global_load_sectors), 1.05 * least)
          << lanes << " lanes, int8 " << int8_cache;
      EXPECT_GE(static_cast<double>(run.counters.global_load_sectors), least);
      EXPECT_EQ(run.counters.bank_conflicts, 0);
      EXPECT_EQ(run.counters.global_store_sectors * 32, run.counters.global_store_bytes);
    }
  }
}

TEST(Takes, WhatTheDecodeKernelsTake) {
  const AttentionShape shape{Element::f16, false, 72, 256, 3};
  EXPECT_TRUE(takes_decode(shape));
  AttentionShape other = shape;
  other.head_size = 68;
  EXPECT_FALSE(takes_decode(other));
  other = shape;
  other.int8_cache = true;
  EXPECT_FALSE(takes_decode(other));
  other.head_size = 80;
  EXPECT_TRUE(takes_decode(other));
  EXPECT_FALSE(takes_decode_matrix(other));
  other = shape;
  other.element = Element::f32;
  EXPECT_FALSE(takes_decode(other));
  other = shape;
  other.value_head_size = 264;
  EXPECT_FALSE(takes_decode(other));
  EXPECT_FALSE(takes_decode_matrix(shape));
  other.value_head_size = 128;
  EXPECT_TRUE(takes_decode_matrix(other));
}

}  // namespace
}  // namespace kvcheck::kernels::device
