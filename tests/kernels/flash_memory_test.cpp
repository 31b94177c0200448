// Memory of the flash engine by shape and storage, and that a windowed cache runs on at constant
// memory and work. The test prints its tables: --gtest_filter='FlashMemoryTable*:FlashLongRun*'.
//
// KVCHECK_LONG_STEPS=1000000 makes the long run so long and adds resident memory and step times,
// which are shown; only the memory is held to anything.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "kernels/cpu/cache_format.h"
#include "tests/kernels/flash_sequence.h"

namespace kvcheck::kernels::flash {
namespace {

/// Steps whose rows, queries and outputs lie in memory that is made once.
class Steps {
 public:
  Steps(const SessionConfig& config, std::int64_t most_tokens, std::int64_t most_queries)
      : config_(config),
        engine_(config),
        rows_(static_cast<std::size_t>(most_tokens * config.kv_heads *
                                       cache_row_bytes(config, config.head_size))),
        query_(static_cast<std::size_t>(most_queries * config.query_heads * config.head_size), 1),
        output_(query_.size()) {}

  /// Zeros are appended; they cost what other numbers cost.
  void run(std::int64_t tokens, std::int64_t queries, const FlashEngine::Inspector& inspect = {}) {
    tokens_[0] = tokens;
    queries_[0] = queries;
    EngineStep step;
    step.tokens = tokens_;
    step.queries = queries_;
    const std::int64_t bytes = cache_row_bytes(config_, config_.head_size);
    const RowSource rows = RowSource::dense(rows_.data(), tokens, config_.kv_heads, bytes);
    step.rows = {rows, rows};
    step.query = RowSource::dense(reinterpret_cast<const std::byte*>(query_.data()), queries,
                                  config_.query_heads, config_.head_size * 4);
    step.output = reinterpret_cast<std::byte*>(output_.data());
    engine_.step(step, inspect);
  }

  FlashEngine& engine() { return engine_; }

 private:
  SessionConfig config_;
  FlashEngine engine_;
  std::vector<std::byte> rows_;
  Floats query_, output_;
  Counts tokens_{0}, queries_{0};
};

struct Bytes {
  std::int64_t cache = 0, decode = 0, prompt = 0;
};

/// Of a cache filled up to `length`: scratch after a decode step, and after 512 tokens before it.
Bytes bytes_of(SessionConfig config, std::int64_t length) {
  config.threads = 1;
  Bytes bytes;
  {
    Steps steps(config, length, 1);
    steps.run(length - 1, 0);
    // What staged the long first step is not what decode needs.
    const std::int64_t staging = steps.engine().scratch_bytes();
    steps.run(1, 1);
    bytes.cache = steps.engine().cache().cache_bytes();
    bytes.decode = steps.engine().scratch_bytes() - staging;
  }
  Steps steps(config, 512, 512);
  steps.run(512, 512);
  bytes.prompt = steps.engine().scratch_bytes();
  return bytes;
}

TEST(FlashMemoryTable, OfBothShapes) {
  std::printf("%-9s %-5s %-16s %12s %14s %14s\n", "shape", "type", "cache", "cache bytes",
              "scratch S=1", "scratch S=512");
  struct Shape {
    std::int64_t query_heads, kv_heads, head_size;
  };
  for (const Shape& shape : {Shape{64, 8, 64}, Shape{32, 8, 128}}) {
    for (const char* storage : {"f32", "f16", "int8", "int4"}) {
      const SessionConfig full =
          flash_config(shape.query_heads, shape.kv_heads, shape.head_size, 8192, storage);
      const Bytes large = bytes_of(full, 8192);
      const Bytes small = bytes_of(windowed(full, 128, 384), 8192);
      const auto print = [&](const char* cache, const Bytes& bytes) {
        std::printf("%2lld/%lld/%-4lld %-5s %-16s %12lld %14lld %14lld\n",
                    static_cast<long long>(shape.query_heads),
                    static_cast<long long>(shape.kv_heads), static_cast<long long>(shape.head_size),
                    storage, cache, static_cast<long long>(bytes.cache),
                    static_cast<long long>(bytes.decode), static_cast<long long>(bytes.prompt));
      };
      print("full T=8192", large);
      print("W=128 C=384", small);
      EXPECT_EQ(large.cache, 2 * shape.kv_heads * 8192 * cache_row_bytes(full, shape.head_size));
      EXPECT_EQ(small.cache * 8192, large.cache * 384);
      // Working memory is that of a tile and of a block of queries, not of the keys.
      EXPECT_EQ(small.decode, large.decode);
      EXPECT_LT(large.decode, 128 << 10);
      EXPECT_LT(large.prompt, 1 << 20);
      // A prompt that overflows a windowed cache meets its rows in a buffer beside it.
      EXPECT_EQ(small.prompt - large.prompt,
                2 * shape.kv_heads * 512 * cache_row_bytes(full, shape.head_size));
    }
  }
}

std::int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::int64_t total = 0, resident = 0;
  file >> total >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

double median(std::vector<double> numbers) {
  std::nth_element(numbers.begin(),
                   numbers.begin() + static_cast<std::ptrdiff_t>(numbers.size() / 2),
                   numbers.end());
  return numbers[numbers.size() / 2];
}

TEST(FlashLongRun, OfAWindowedCacheCompactsOnceInGStepsAndNeedsNoMoreMemory) {
  const char* const asked = std::getenv("KVCHECK_LONG_STEPS");
  const std::int64_t count = asked != nullptr ? std::stoll(asked) : 20000;
  constexpr std::int64_t kWindow = 16, kCapacity = 48, kPeriod = kCapacity - kWindow + 1;
  SessionConfig config = windowed(flash_config(4, 2, 16, 0), kWindow, kCapacity);
  config.threads = 1;
  Steps steps(config, 1, 1);
  std::vector<double> times;
  times.reserve(static_cast<std::size_t>(asked != nullptr ? count : 0));
  std::int64_t moved = 0, staged = 0, scratch = 0, resident = 0;
  for (std::int64_t length = 1; length <= count; ++length) {
    const auto before = std::chrono::steady_clock::now();
    steps.run(1, 1, [&](FlashAttention&, const FlashStep& step, std::span<const EntryPlan> plans) {
      moved = plans[0].moved;
      staged += plans[0].staged ? 1 : 0;
      ASSERT_LE(step.entries[0].live, kCapacity);
    });
    if (asked != nullptr) {
      times.push_back(
          std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count());
    }
    // The buffer overflows at C + 1, C + 1 + G and so on; what stays is what a query still sees.
    const bool overflows = length > kCapacity && (length - kCapacity - 1) % kPeriod == 0;
    ASSERT_EQ(moved, overflows ? kWindow - 1 : 0) << length;
    if (length == 2 * kCapacity) {
      scratch = steps.engine().scratch_bytes();
      resident = resident_bytes();
    }
    if (length > 2 * kCapacity) {
      ASSERT_EQ(steps.engine().scratch_bytes(), scratch) << length;
    }
  }
  EXPECT_EQ(staged, 0);
  EXPECT_EQ(steps.engine().cache().cache_bytes(), 2 * 2 * kCapacity * 16 * 4);
  if (asked == nullptr) return;
  const auto tenth = static_cast<std::ptrdiff_t>(times.size() / 10);
  std::printf("%lld steps: median of the first tenth %.3f us, of the last %.3f us\n",
              static_cast<long long>(count), 1e6 * median({times.begin(), times.begin() + tenth}),
              1e6 * median({times.end() - tenth, times.end()}));
  const std::int64_t grown = resident_bytes() - resident;
  // The times that are kept here: 8 bytes for each step.
  std::printf("resident: %lld bytes, grown by %lld, of which times %lld\n",
              static_cast<long long>(resident), static_cast<long long>(grown),
              static_cast<long long>(8 * count));
  EXPECT_LE(grown, 8 * count + (256 << 10));
}

}  // namespace
}  // namespace kvcheck::kernels::flash
