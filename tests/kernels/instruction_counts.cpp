// Steps of cpu-flash whose instructions callgrind counts: see instruction_counts.py.
//
// Each case fills a cache and runs a step to warm up; then counted_step() runs another one. On
// standard output: the build in the first line, then for each case how many products of a key's
// lane and a query's lane its step computes, and its name. With --build the first line alone.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include <hwy/base.h>
#include <hwy/highway.h>

#include "kernels/cpu/cache_format.h"
#include "kernels/cpu/flash/elements.h"
#include "kernels/cpu/flash/flash_engine.h"

using namespace kvcheck::kernels;

/// What callgrind collects, and after which it writes a part.
extern "C" __attribute__((noinline)) void counted_step(flash::FlashEngine& engine,
                                                       const flash::EngineStep& step) {
  engine.step(step);
  asm volatile("" ::: "memory");
}

namespace {

struct Case {
  const char* name;
  std::int64_t query_heads, kv_heads, head_size;
  const char* storage;
  std::int64_t past, tokens;
  std::int64_t window = -1, capacity = 0;  ///< capacity 0 = a full cache.
};

const Case kCases[] = {
    {"decode f32 64/8/64 T=1024", 64, 8, 64, "f32", 1023, 1},
    {"decode f32 32/8/128 T=1024", 32, 8, 128, "f32", 1023, 1},
    {"decode f32 8/8/64 T=512", 8, 8, 64, "f32", 511, 1},
    {"decode f32 6/2/80 T=512", 6, 2, 80, "f32", 511, 1},
    {"decode f16 64/8/64 T=1024", 64, 8, 64, "f16", 1023, 1},
    {"decode f16 32/8/128 T=1024", 32, 8, 128, "f16", 1023, 1},
    {"decode bf16 64/8/64 T=1024", 64, 8, 64, "bf16", 1023, 1},
    {"decode int8 64/8/64 T=1024", 64, 8, 64, "int8", 1023, 1},
    {"decode int8 32/8/128 T=1024", 32, 8, 128, "int8", 1023, 1},
    {"decode int4 64/8/64 T=1024", 64, 8, 64, "int4", 1023, 1},
    {"decode int4 32/8/128 T=1024", 32, 8, 128, "int4", 1023, 1},
    {"prefill f32 16/2/64 S=128", 16, 2, 64, "f32", 0, 128},
    {"prefill f32 8/2/128 S=128", 8, 2, 128, "f32", 0, 128},
    {"prefill f16 16/2/64 S=128", 16, 2, 64, "f16", 0, 128},
    {"prefill f32 16/2/64 P=512 S=32", 16, 2, 64, "f32", 512, 32},
    {"windowed drifting f32 64/8/64 W=128 C=384", 64, 8, 64, "f32", 500, 1, 128, 384},
    {"windowed compacting f32 64/8/64 W=128 C=384", 64, 8, 64, "f32", 641, 1, 128, 384},
    {"local window f32 64/8/64 W=128 T=2048", 64, 8, 64, "f32", 2047, 1, 128},
};

/// Numbers in [-1, 1) that depend on nothing but how many were taken before.
class Numbers {
 public:
  Numbers() : pool_(65521) {
    std::uint64_t state = 1;
    for (float& number : pool_) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      number = static_cast<float>(static_cast<std::int32_t>(state >> 32)) * 0x1p-31f;
    }
  }
  float next() {
    if (next_ == pool_.size()) next_ = 0;
    return pool_[next_++];
  }

 private:
  std::vector<float> pool_;
  std::size_t next_ = 0;
};

SessionConfig config_of(const Case& c) {
  SessionConfig config;
  config.query_heads = c.query_heads;
  config.kv_heads = c.kv_heads;
  config.head_size = config.value_head_size = c.head_size;
  config.capacity = c.capacity > 0 ? c.capacity : c.past + c.tokens;
  config.layout = c.capacity > 0 ? "block" : "full";
  config.window_size = c.window;
  config.threads = 1;
  if (const auto type = element_type_from(c.storage)) {
    config.element_type = *type;
    return config;
  }
  Tensor scale = Tensor::zeros(ElementType::f32, {1});
  const float step = 1.0f / 8;
  std::memcpy(scale.bytes.data(), &step, sizeof step);
  config.quantisation = {c.storage, false, scale, scale};
  return config;
}

/// Rows of `tokens` tokens as the cache stores them: any codes, or elements by their upper bits.
std::vector<std::byte> rows_of(const SessionConfig& config, std::int64_t tokens, Numbers& numbers) {
  const std::int64_t elements = tokens * config.kv_heads * cache_width(config, config.head_size);
  const ElementType type = cache_type(config);
  std::vector<std::byte> rows(static_cast<std::size_t>(elements) * element_bytes(type));
  for (std::int64_t i = 0; i < elements; ++i) {
    const float number = numbers.next();
    const auto at = static_cast<std::size_t>(i) * element_bytes(type);
    if (type == ElementType::f16) {
      const flash::Half half = flash::to_half(number);
      std::memcpy(rows.data() + at, &half, 2);
    } else if (type == ElementType::bf16) {
      const flash::Bfloat bfloat = flash::to_bfloat(number);
      std::memcpy(rows.data() + at, &bfloat, 2);
    } else if (type == ElementType::f32) {
      std::memcpy(rows.data() + at, &number, 4);
    } else {
      rows[at] = static_cast<std::byte>(static_cast<std::int8_t>(number * 127));
    }
  }
  return rows;
}

/// Appends `tokens` tokens and asks a query of each, or of none.
void run(flash::FlashEngine& engine, std::int64_t tokens, bool asks, bool counted,
         Numbers& numbers) {
  const SessionConfig& config = engine.config();
  const std::vector<std::byte> keys = rows_of(config, tokens, numbers);
  const std::vector<std::byte> values = rows_of(config, tokens, numbers);
  const std::int64_t queries = asks ? tokens : 0, row = config.query_heads * config.head_size;
  std::vector<float> query(static_cast<std::size_t>(queries * row)), output(query.size());
  for (float& lane : query) lane = 4 * numbers.next();
  const std::vector<std::int64_t> appended{tokens}, asked{queries};
  flash::EngineStep step;
  step.tokens = appended;
  step.queries = asked;
  const std::int64_t bytes = cache_row_bytes(config, config.head_size);
  step.rows = {RowSource::dense(keys.data(), tokens, config.kv_heads, bytes),
               RowSource::dense(values.data(), tokens, config.kv_heads, bytes)};
  step.query = RowSource::dense(reinterpret_cast<const std::byte*>(query.data()), queries,
                                config.query_heads, config.head_size * 4);
  step.output = reinterpret_cast<std::byte*>(output.data());
  if (counted) {
    counted_step(engine, step);
  } else {
    engine.step(step);
  }
}

/// Products of lanes of keys and queries in the counted step.
std::int64_t products(const Case& c) {
  std::int64_t keys = 0;
  for (std::int64_t i = 1; i <= c.tokens; ++i) {
    keys += c.window < 0 ? c.past + i : std::min(c.window, c.past + i);
  }
  return keys * c.query_heads * c.head_size;
}

}  // namespace

int main(int count, char** arguments) {
  std::printf("g++ %d.%d.%d, Highway %d.%d.%d\n", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__,
              HWY_MAJOR, HWY_MINOR, HWY_PATCH);
  if (count > 1 && std::strcmp(arguments[1], "--build") == 0) return 0;
  for (const Case& c : kCases) {
    SessionConfig config = config_of(c);
    config.isa = "avx2";
    Numbers numbers;
    flash::FlashEngine engine(config);
    const bool evicts = c.capacity > 0;
    // A step like the counted one first, which makes the working memory.
    if (evicts) {
      for (std::int64_t i = 1; i < c.past; ++i) run(engine, 1, false, false, numbers);
      run(engine, 1, true, false, numbers);
    } else {
      if (c.past > 0) run(engine, c.past, false, false, numbers);
      run(engine, c.tokens, true, false, numbers);
      engine.cache().rollback(std::vector<std::int64_t>{c.tokens});
    }
    run(engine, c.tokens, true, true, numbers);
    std::printf("%lld %s\n", static_cast<long long>(products(c)), c.name);
  }
  return 0;
}
