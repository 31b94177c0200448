// Sessions of cuda-simt against cpu-naive: the same rows bit for bit and the same outputs, over
// steps that evict, move, stage, roll back and load.
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cpu/element.h"
#include "kernels/cpu/naive/cpu_naive.h"
#include "kernels/cuda/cuda_simt.h"
#include "tests/kernels/cpu_sequence.h"

namespace kvcheck::kernels {
namespace {

/// Two sessions of one configuration that are asked the same.
class Pair {
 public:
  Pair(const SessionConfig& config, std::unique_ptr<Target> naive, std::unique_ptr<Target> device)
      : config_(config),
        targets_{std::move(naive), std::move(device)},
        lengths_(static_cast<std::size_t>(config.batch), 0) {
    for (std::size_t i = 0; i < 2; ++i) {
      SessionConfig taken = config;
      if (i == 0) taken.launch.reset();  // cpu-naive makes none.
      auto opened = targets_[i]->open(taken);
      EXPECT_TRUE(std::holds_alternative<std::unique_ptr<Session>>(opened));
      sessions_[i] = std::move(std::get<std::unique_ptr<Session>>(opened));
    }
  }

  void append(const Counts& tokens, const Counts& queries) {
    StepRequest request;
    request.tokens = tokens;
    request.queries = queries;
    const std::int64_t most = *std::max_element(tokens.begin(), tokens.end());
    const std::int64_t asked = *std::max_element(queries.begin(), queries.end());
    request.query = random({config_.batch, asked, config_.query_heads, config_.head_size});
    request.key = random({config_.batch, most, config_.kv_heads, config_.head_size});
    request.value = random({config_.batch, most, config_.kv_heads, config_.value_head_size});
    request.want_rows = true;
    const StepResult expected = answered<StepResult>(sessions_[0]->step(request));
    const StepResult found = answered<StepResult>(sessions_[1]->step(request));
    ASSERT_TRUE(expected.rows && found.rows);
    expect_rows(*expected.rows, *found.rows);
    if (asked > 0) expect_outputs(*expected.output, *found.output, queries);
    for (std::size_t b = 0; b < tokens.size(); ++b) lengths_[b] += tokens[b];
  }
  void append(const Counts& tokens) { append(tokens, tokens); }

  void rollback(const Counts& tokens) {
    const bool taken = std::holds_alternative<std::monostate>(sessions_[0]->rollback(tokens));
    EXPECT_EQ(std::holds_alternative<std::monostate>(sessions_[1]->rollback(tokens)), taken);
    expect_rows(answered<CacheRows>(sessions_[0]->present()),
                answered<CacheRows>(sessions_[1]->present()));
  }

  void load(const Counts& lengths, std::int64_t rows) {
    LoadRequest request{lengths,
                        {random({config_.batch, config_.kv_heads, rows, config_.head_size}),
                         random({config_.batch, config_.kv_heads, rows, config_.value_head_size})}};
    answered<std::monostate>(sessions_[0]->load(request));
    answered<std::monostate>(sessions_[1]->load(request));
  }

 private:
  template <class T>
  T answered(Answer<T>&& answer) {
    if (const auto* refusal = std::get_if<Refusal>(&answer)) ADD_FAILURE() << refusal->reason;
    if (const auto* failure = std::get_if<Failure>(&answer)) ADD_FAILURE() << failure->detail;
    return std::holds_alternative<T>(answer) ? std::get<T>(std::move(answer)) : T{};
  }

  Tensor random(std::vector<std::int64_t> shape) {
    Tensor tensor = Tensor::zeros(config_.element_type, std::move(shape));
    const std::size_t bytes = element_bytes(config_.element_type);
    for (std::size_t at = 0; at < tensor.bytes.size(); at += bytes) {
      const double number = static_cast<double>(engine_() % 2001) / 1000 - 1;
      encode_element(config_.element_type, number, tensor.bytes.data() + at);
    }
    return tensor;
  }

  static void expect_rows(const CacheRows& expected, const CacheRows& found) {
    EXPECT_EQ(expected.key.shape, found.key.shape);
    EXPECT_TRUE(expected.key.bytes == found.key.bytes) << "keys";
    EXPECT_TRUE(expected.value.bytes == found.value.bytes) << "values";
  }

  void expect_outputs(const Tensor& expected, const Tensor& found, const Counts& queries) const {
    const Numbers a = numbers_of(expected), b = numbers_of(found);
    ASSERT_EQ(expected.shape, found.shape);
    const double most = config_.element_type == ElementType::f32   ? 1e-5
                        : config_.element_type == ElementType::f16 ? 4e-3
                                                                   : 3e-2;
    const auto row = static_cast<std::size_t>(config_.query_heads * config_.value_head_size);
    const auto asked = static_cast<std::size_t>(expected.shape[1]);
    for (std::size_t b_entry = 0; b_entry < queries.size(); ++b_entry) {
      for (std::size_t i = 0; i < static_cast<std::size_t>(queries[b_entry]) * row; ++i) {
        const std::size_t at = b_entry * asked * row + i;
        ASSERT_NEAR(a[at], b[at], most) << "entry " << b_entry << ", element " << i;
      }
    }
  }

  SessionConfig config_;
  std::unique_ptr<Target> targets_[2];
  std::unique_ptr<Session> sessions_[2];
  Counts lengths_;
  std::mt19937 engine_{7};
};

struct Shape {
  std::string name;
  ElementType type;
  std::string kernel;
  std::int64_t head_size = 8;
};

void PrintTo(const Shape& shape, std::ostream* out) { *out << shape.name; }

class CudaSession : public testing::TestWithParam<Shape> {
 protected:
  SessionConfig config(SessionConfig from) const {
    from.element_type = GetParam().type;
    from.query_heads = 4;
    from.kv_heads = 2;
    from.head_size = from.value_head_size = GetParam().head_size;
    from.launch = LaunchConfig{"random", 3, GetParam().kernel, 64, 0};
    return from;
  }
  static Pair pair(const SessionConfig& config) {
    return {config, make_cpu_naive(), make_cuda_simt()};
  }
};

TEST_P(CudaSession, FullCache) {
  Pair both = pair(config(full_cache()));
  both.append({5});
  both.append({1});
  both.rollback({2});
  both.append({3});
  both.rollback({7});
  both.append({9});
}

TEST_P(CudaSession, BlockCacheMovesStagesAndRollsBack) {
  Pair both = pair(config(block_cache(6, 4)));
  both.append({3});
  for (int step = 0; step < 7; ++step) both.append({1});
  both.rollback({1});
  both.append({2});
  both.append({5});  // Evicts rows that its own queries read.
  both.rollback({5});
  both.append({11});
  both.append({1});
}

TEST_P(CudaSession, ShiftingCache) {
  SessionConfig shifting = block_cache(5, 4);
  shifting.layout = "min_overflow";
  Pair both = pair(config(shifting));
  both.append({4});
  for (int step = 0; step < 4; ++step) both.append({1});
  both.append({3});
}

TEST_P(CudaSession, RaggedBatchWithIdleEntries) {
  SessionConfig ragged = block_cache(7, 3);
  ragged.batch = 3;
  Pair both = pair(config(ragged));
  both.append({4, 1, 2});
  both.append({1, 0, 5});
  both.append({0, 2, 0});
  both.rollback({1, 0, 2});
  both.append({6, 6, 6});
}

TEST_P(CudaSession, PastAndPresentInTwoBuffers) {
  SessionConfig two = block_cache(6, 3);
  two.share_buffers = false;
  Pair both = pair(config(two));
  both.append({4});
  both.append({1});
  both.append({4});
  both.rollback({1});
  both.append({2});
}

TEST_P(CudaSession, AttentionConcatenates) {
  SessionConfig growing = attention();
  growing.batch = 2;
  Pair both = pair(config(growing));
  both.append({3, 3}, {3, 3});
  both.append({1, 1}, {1, 1});
  both.append({2, 2}, {5, 5});
  both.rollback({3, 3});
  both.append({2, 2}, {2, 2});
}

TEST_P(CudaSession, AttentionWithLengths) {
  SessionConfig buffer = nonpad(9);
  buffer.batch = 2;
  Pair both = pair(config(buffer));
  both.append({3, 5}, {4, 4});
  both.append({2, 0}, {1, 1});
}

TEST_P(CudaSession, ALoadedPast) {
  Pair both = pair(config(full_cache()));
  both.load({6}, 16);
  both.append({2});
}

INSTANTIATE_TEST_SUITE_P(
    All, CudaSession,
    testing::Values(Shape{"f32", ElementType::f32, "any"},
                    Shape{"f32_odd", ElementType::f32, "any", 5},
                    Shape{"f16_any", ElementType::f16, "any"},
                    Shape{"f16_unfused", ElementType::f16, "unfused"},
                    Shape{"f16_decode", ElementType::f16, "decode"},
                    Shape{"f16_decode_matrix", ElementType::f16, "decode_matrix"},
                    Shape{"f16_prefill", ElementType::f16, "prefill"},
                    Shape{"bf16_decode", ElementType::bf16, "decode", 24},
                    Shape{"bf16_decode_matrix", ElementType::bf16, "decode_matrix", 72},
                    Shape{"bf16_prefill", ElementType::bf16, "prefill", 136}),
    [](const testing::TestParamInfo<Shape>& shape) { return shape.param.name; });

}  // namespace
}  // namespace kvcheck::kernels
