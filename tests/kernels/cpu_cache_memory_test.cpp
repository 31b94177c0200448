// The memory of the cache: what it views, what it keeps, and moves on several threads.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cpu/cache.h"
#include "kernels/cpu/cache_format.h"
#include "tests/kernels/cpu_sequence.h"

namespace kvcheck::kernels {
namespace {

/// Two heads of rows of four f32 lanes.
SessionConfig two_heads(SessionConfig config) {
  config.query_heads = config.kv_heads = 2;
  config.head_size = config.value_head_size = 4;
  return config;
}

/// Appends `tokens` tokens to one entry; each lane of head n of a token holds position + 100 n.
/// What attention reads is left as it is until the next step.
void append(KvCache& cache, const SessionConfig& config, std::int64_t tokens,
            std::vector<float>& rows) {
  rows.clear();
  for (std::int64_t t = 0; t < tokens; ++t) {
    for (std::int64_t n = 0; n < config.kv_heads; ++n) {
      const auto number = static_cast<float>(cache.lengths()[0] + t + 100 * n);
      rows.insert(rows.end(), static_cast<std::size_t>(config.head_size), number);
    }
  }
  const RowSource source =
      RowSource::dense(reinterpret_cast<const std::byte*>(rows.data()), tokens, config.kv_heads,
                       cache_row_bytes(config, config.head_size));
  cache.plan(Counts{tokens});
  cache.place({source, source});
}

float first_lane(const RowView& rows, std::int64_t head, std::int64_t row) {
  float lane = 0;
  std::memcpy(&lane, rows.row(head, row), sizeof lane);
  return lane;
}

TEST(CacheFormat, RowsOfEveryKindHaveTheirBytes) {
  SessionConfig config;
  const auto bytes = [&](const char* kind, std::int64_t lanes) {
    config.quantisation.kind = kind;
    return cache_row_bytes(config, lanes);
  };
  EXPECT_EQ(bytes("none", 5), 20);
  EXPECT_EQ(bytes("int8", 5), 5);
  EXPECT_EQ(bytes("int4", 5), 3);
  EXPECT_EQ(bytes("int4", 8), 4);
  EXPECT_EQ(bytes("fp8", 5), 5);
}

TEST(EntryRows, NameTheRowsOfAnEntryAndHowManyHoldPositions) {
  const SessionConfig config = two_heads(block_cache(6, 4));
  KvCache cache(config);
  std::vector<float> rows;
  append(cache, config, 5, rows);
  EntryRows view = cache.rows_of(0);
  EXPECT_EQ(view.rows, 6);
  EXPECT_EQ(view.live, 5);
  EXPECT_EQ(view.first_position, 0);
  EXPECT_EQ(view.key.row_stride, 16);
  EXPECT_EQ(view.key.head_stride, 96);
  EXPECT_EQ(first_lane(view.key, 1, 4), 104);
  cache.settle();
  // P = 5, S = 2 stages: five old rows and two new ones, as in the contract.
  append(cache, config, 2, rows);
  view = cache.rows_of(0);
  EXPECT_EQ(view.rows, 7);
  EXPECT_EQ(view.live, 7);
  EXPECT_EQ(view.first_position, 0);
  EXPECT_EQ(view.key.head_stride, 7 * 16);
  EXPECT_EQ(first_lane(view.value, 1, 6), 106);
  cache.settle();
  view = cache.rows_of(0);
  EXPECT_EQ(view.live, 4);
  EXPECT_EQ(view.first_position, 3);
  EXPECT_EQ(first_lane(view.value, 1, 0), 103);
}

TEST(CacheBytes, AreThoseOfItsRowsAndOfItsStaging) {
  const SessionConfig config = two_heads(block_cache(6, 4));
  KvCache cache(config);
  EXPECT_EQ(cache.cache_bytes(), 2 * 2 * 6 * 16);
  EXPECT_EQ(cache.scratch_bytes(), 0);
  std::vector<float> rows;
  // P = 0, S = 8 stages eight rows; P = 8, S = 2 stages seven in the memory that is there.
  append(cache, config, 8, rows);
  cache.settle();
  EXPECT_EQ(cache.scratch_bytes(), 2 * 2 * 8 * 16);
  append(cache, config, 2, rows);
  EXPECT_EQ(cache.rows_of(0).rows, 7);
  cache.settle();
  EXPECT_EQ(cache.scratch_bytes(), 2 * 2 * 8 * 16);
}

TEST(CacheBytes, OfAConcatenatingCacheGrowWithIt) {
  const SessionConfig config = two_heads(attention());
  KvCache cache(config);
  EXPECT_EQ(cache.cache_bytes(), 0);
  std::vector<float> rows;
  append(cache, config, 3, rows);
  cache.settle();
  EXPECT_EQ(cache.cache_bytes(), 2 * 2 * 3 * 16);
}

/// Keys and values after `steps` single tokens into a cache whose compactions move
/// 2 * heads * kept * row bytes.
CacheRows after_steps(int threads) {
  SessionConfig config = block_cache(80, 64);
  config.threads = threads;
  config.query_heads = config.kv_heads = 8;
  config.head_size = config.value_head_size = 128;
  // 2 * 8 * 63 * 512 bytes = 516,096: above kParallelBytes.
  static_assert(2 * 8 * 63 * 512 > KvCache::kParallelBytes);
  KvCache cache(config);
  std::vector<float> rows;
  for (int step = 0; step < 120; ++step) {
    append(cache, config, 1, rows);
    cache.settle();
  }
  return cache.present();
}

TEST(Compaction, OnSeveralThreadsGivesTheSameRows) {
  const CacheRows alone = after_steps(1);
  for (const int threads : {0, 2, 3}) {
    const CacheRows shared = after_steps(threads);
    EXPECT_EQ(shared.key.bytes, alone.key.bytes) << threads;
    EXPECT_EQ(shared.value.bytes, alone.value.bytes) << threads;
  }
  // T = 120 = 80 + 40, G = 17: L = 120 - 51 = 69, so row 0 holds position 51.
  float first = 0;
  std::memcpy(&first, alone.key.bytes.data(), sizeof first);
  EXPECT_EQ(first, 51);
}

TEST(NewRows, ComeFromAnyStrides) {
  const SessionConfig config = two_heads(full_cache());
  KvCache cache(config);
  // Key and value of a token side by side, heads before them: [head][token][key, value][4].
  std::vector<float> packed(2 * 3 * 2 * 4);
  for (std::size_t i = 0; i < packed.size(); ++i) packed[i] = static_cast<float>(i / 4);
  const auto* base = reinterpret_cast<const std::byte*>(packed.data());
  cache.plan(Counts{3});
  cache.place({{base, 0, 32, 96}, {base + 16, 0, 32, 96}});
  const EntryRows view = cache.rows_of(0);
  for (std::int64_t head = 0; head < 2; ++head) {
    for (std::int64_t token = 0; token < 3; ++token) {
      EXPECT_EQ(first_lane(view.key, head, token), static_cast<float>(6 * head + 2 * token));
      EXPECT_EQ(first_lane(view.value, head, token), static_cast<float>(6 * head + 2 * token + 1));
    }
  }
  cache.settle();
}

}  // namespace
}  // namespace kvcheck::kernels
