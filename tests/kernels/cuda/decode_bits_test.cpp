// The bits of decode and decode_matrix depend on what a query sees alone: not on the cache, the
// step, the company or the order in which threads run.
#include <gtest/gtest.h>

#include "tests/kernels/cuda/fused_case.h"

namespace kvcheck::kernels::device {
namespace {

using Kernel = decltype(FusedCase::kernel);

struct Variant {
  Kernel kernel;
  bool int8_cache;
  std::int64_t split_positions;
};

constexpr Variant kVariants[] = {{&KernelTable::decode, false, 0},
                                 {&KernelTable::decode, false, 64},
                                 {&KernelTable::decode, true, 64},
                                 {&KernelTable::decode_matrix, false, 0},
                                 {&KernelTable::decode_matrix, false, 64}};

/// Four query heads to a KV head, `queries` of them, behind 230 positions.
FusedCase step(const Variant& variant, std::int64_t queries) {
  FusedCase c;
  c.kernel = variant.kernel;
  c.int8_cache = variant.int8_cache;
  c.split_positions = variant.split_positions;
  c.query_heads = 8;
  c.kv_heads = 2;
  c.largest_query = 4;
  c.entries = {{.live = 230, .origin = 230 - queries, .queries = queries, .capacity = 240}};
  return c;
}

/// The bits of the queries of one entry from `first` on.
std::vector<std::uint16_t> bits_of(const FusedCase& c, const FusedRun& run, std::size_t entry,
                                   std::int64_t first) {
  EXPECT_TRUE(run.defects.empty()) << run.first_defect();
  const auto at = [&](std::int64_t query) {
    return run.bits.begin() + c.output_row(entry, query, 0) * c.value_head_size;
  };
  return {at(first), at(c.entries[entry].queries)};
}

TEST(DecodeBits, AWindowedCacheAndAFullOneWithTheSameWindow) {
  for (const Variant& variant : kVariants) {
    for (const std::int64_t window : {1, 40, 100}) {
      FusedCase full = step(variant, 3);
      full.window = window;
      const std::vector<std::uint16_t> expected = bits_of(full, run_fused(full), 0, 0);
      for (const std::int64_t slack : {0, 1, 15, 37}) {
        FusedCase windowed = full;
        FusedEntry& entry = windowed.entries[0];
        entry.first_position = 227 - window + 1 - slack;
        entry.live = 230 - entry.first_position;
        entry.capacity = entry.live + 3;
        EXPECT_EQ(bits_of(windowed, run_fused(windowed), 0, 0), expected) << window << " " << slack;
      }
    }
  }
}

TEST(DecodeBits, OneStepAndSeveral) {
  for (const Variant& variant : kVariants) {
    for (const std::int64_t window : {-1, 50}) {
      FusedCase all = step(variant, 5);
      all.window = window;
      const FusedRun run = run_fused(all);
      for (std::int64_t query = 0; query < 5; ++query) {
        FusedCase one = all;
        FusedEntry& entry = one.entries[0];
        entry.live = 225 + query + 1;
        entry.origin = 225 + query;
        entry.queries = 1;
        const std::vector<std::uint16_t> rest = bits_of(all, run, 0, query);
        const std::vector<std::uint16_t> alone = bits_of(one, run_fused(one), 0, 0);
        EXPECT_TRUE(std::equal(alone.begin(), alone.end(), rest.begin())) << query;
      }
    }
  }
}

TEST(DecodeBits, CompanyAndGroups) {
  for (const Variant& variant : kVariants) {
    const FusedCase alone = step(variant, 2);
    const std::vector<std::uint16_t> expected = bits_of(alone, run_fused(alone), 0, 0);
    FusedCase company = alone;
    company.entries.push_back({.live = 60, .origin = 50, .queries = 6, .capacity = 60});
    company.entries.push_back(
        {.first_position = 300, .live = 60, .origin = 359, .queries = 1, .capacity = 60});
    EXPECT_EQ(bits_of(company, run_fused(company), 0, 0), expected);
  }
}

TEST(DecodeBits, RunsRepeatUnderEveryOrder) {
  for (const Variant& variant : kVariants) {
    FusedCase c = step(variant, 3);
    c.window = 90;
    const FusedRun first = run_fused(c);
    for (const simt::Order order :
         {simt::Order::random, simt::Order::reverse, simt::Order::priority, simt::Order::starve}) {
      EXPECT_EQ(run_fused(c, {order, 11}).bits, first.bits);
    }
  }
}

}  // namespace
}  // namespace kvcheck::kernels::device
