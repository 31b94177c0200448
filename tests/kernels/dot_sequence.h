// A sequence of steps on the engine with the bf16 dot products, with outputs in f32.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "kernels/cpu/flash/dot_kernels.h"
#include "kernels/cpu/flash/elements.h"
#include "kernels/cpu/flash/flash_engine.h"

#define SKIP_WITHOUT_DOT_PRODUCTS()                               \
  if (kvcheck::kernels::flash::dot_kernels() == nullptr) {        \
    GTEST_SKIP() << "this processor has no dot products of bf16"; \
  }                                                               \
  static_assert(true)

namespace kvcheck::kernels::flash {

using Floats = std::vector<float>;

/// One entry of bf16 rows; numbers that are no bf16 are rounded.
class DotSequence {
 public:
  /// \pre dot_kernels() is not null
  explicit DotSequence(const SessionConfig& config)
      : config_(config), engine_(config, dot_kernels()) {}

  /// One head of `lanes` lanes, full cache of `capacity` rows, scale 1.
  static SessionConfig one_head(std::int64_t lanes, std::int64_t capacity = 16) {
    SessionConfig config;
    config.element_type = ElementType::bf16;
    config.head_size = config.value_head_size = lanes;
    config.capacity = capacity;
    config.scale = 1;
    config.threads = 1;
    return config;
  }

  /// Appends tokens with [token][KV head][lane] of keys and values, and asks for
  /// [query][head][lane]; gives [query][head][lane].
  Floats append(const Floats& queries, const Floats& keys, const Floats& values,
                const MaskSource* mask = nullptr) {
    const std::int64_t tokens = size(keys) / (config_.kv_heads * config_.head_size);
    const std::int64_t asked = size(queries) / (config_.query_heads * config_.head_size);
    const auto key = narrowed(keys), value = narrowed(values), query = narrowed(queries);
    Floats output(static_cast<std::size_t>(asked * config_.query_heads * config_.value_head_size));
    EngineStep step;
    step.tokens = {&tokens, 1};
    step.queries = {&asked, 1};
    step.rows = {
        RowSource::dense(bytes(key), tokens, config_.kv_heads, config_.head_size * 2),
        RowSource::dense(bytes(value), tokens, config_.kv_heads, config_.value_head_size * 2)};
    step.query = RowSource::dense(bytes(query), asked, config_.query_heads, config_.head_size * 2);
    step.query_type = Storage::bf16;
    step.mask = mask;
    step.output = reinterpret_cast<std::byte*>(output.data());
    engine_.step(step);
    return output;
  }

  FlashEngine& engine() { return engine_; }

 private:
  using Words = std::vector<Bfloat>;
  static std::int64_t size(const Floats& numbers) {
    return static_cast<std::int64_t>(numbers.size());
  }
  static Words narrowed(const Floats& numbers) {
    Words words(numbers.size());
    std::transform(numbers.begin(), numbers.end(), words.begin(), to_bfloat);
    return words;
  }
  static const std::byte* bytes(const Words& words) {
    return reinterpret_cast<const std::byte*>(words.data());
  }

  SessionConfig config_;
  FlashEngine engine_;
};

}  // namespace kvcheck::kernels::flash
