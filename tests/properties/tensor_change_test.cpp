// What a target is given after a change, and that its answers come back unchanged.
#include "properties/tensor_change.h"

#include <cmath>
#include <iterator>
#include <limits>

#include <gtest/gtest.h>

#include "kernels/cpu/naive/cpu_naive.h"
#include "model/element_type.h"
#include "model/scenario_json.h"
#include "properties/convert.h"
#include "properties/execution.h"
#include "properties/requests.h"

namespace kvcheck::properties {
namespace {

using kernels::Tensor;

Tensor numbered(std::vector<std::int64_t> shape) {
  Tensor tensor = Tensor::zeros(kernels::ElementType::i8, std::move(shape));
  for (std::size_t i = 0; i < tensor.bytes.size(); ++i) {
    tensor.bytes[i] = static_cast<std::byte>(i);
  }
  return tensor;
}

std::vector<int> numbers(const Tensor& tensor) {
  std::vector<int> result;
  for (const std::byte byte : tensor.bytes) result.push_back(std::to_integer<int>(byte));
  return result;
}

TEST(Reorder, MovesSlicesOfOneDimension) {
  Tensor first = numbered({3, 2});
  reorder(first, 0, {2, 0, 1});
  EXPECT_EQ(numbers(first), (std::vector<int>{4, 5, 0, 1, 2, 3}));
  Tensor middle = numbered({2, 3, 1});
  reorder(middle, 1, {1, 2, 0});
  EXPECT_EQ(numbers(middle), (std::vector<int>{1, 2, 0, 4, 5, 3}));
  reorder(middle, 1, {0, 1, 2});
  EXPECT_EQ(numbers(middle), (std::vector<int>{1, 2, 0, 4, 5, 3}));
  reorder(middle, 1, {0, 2, 1});
  EXPECT_EQ(numbers(middle), (std::vector<int>{1, 0, 2, 4, 3, 5}));
}

/// Two entries of unlike lengths, two KV heads with two query heads each, a mask, sinks.
model::Scenario ragged(const std::string& more = "") {
  return model::parse_scenario(R"({"schema":1,"operator":"gqa","batch":2,"query_heads":4,
      "kv_heads":2,"head_size":8,"head_sink":true,"mask":{"kind":"additive","rank":4,
      "hidden_percent":40,"seed":2},"fill":{"kind":"random","seed":3},"cache":{"capacity":9})" +
                               more + R"(,"steps":[{"append":[4,2]},{"rollback":[1,0]},
      {"append":[1,3]}]})");
}

kernels::StepRequest request_of(const model::Scenario& scenario, const TensorChange& change) {
  const model::Timeline timeline(scenario);
  auto request = step_request(scenario, timeline, model::Fill(scenario, timeline), 0);
  change.step(request);
  return request;
}

double at(const Tensor& tensor, std::int64_t a, std::int64_t b, std::int64_t c) {
  return element(tensor, ((a * tensor.shape[1] + b) * tensor.shape[2] + c) * tensor.shape[3]);
}

TEST(TensorChange, EntriesTradePlacesWithTheirCountsAndMasks) {
  const model::Scenario scenario = ragged();
  const auto plain = request_of(scenario, TensorChange());
  const auto request = request_of(scenario, *reorder_entries({1, 0}));
  EXPECT_EQ(request.tokens, (std::vector<std::int64_t>{2, 4}));
  EXPECT_EQ(request.queries, (std::vector<std::int64_t>{2, 4}));
  EXPECT_EQ(at(request.key, 0, 1, 1), at(plain.key, 1, 1, 1));
  EXPECT_EQ(at(request.query, 1, 0, 3), at(plain.query, 0, 0, 3));
  EXPECT_EQ(at(*request.mask, 0, 2, 1), at(*plain.mask, 1, 2, 1));
}

TEST(TensorChange, HeadsTakeTheirSinksAlong) {
  const auto change = reorder_heads({3, 2, 1, 0}, {1, 0});
  const auto plain = request_of(ragged(), TensorChange());
  const auto request = request_of(ragged(), *change);
  EXPECT_EQ(at(request.query, 0, 2, 0), at(plain.query, 0, 2, 3));
  EXPECT_EQ(at(request.value, 1, 1, 0), at(plain.value, 1, 1, 1));
  EXPECT_EQ(at(*request.mask, 0, 0, 1), at(*plain.mask, 0, 3, 1));
  kernels::SessionConfig config;
  config.head_sink = numbered({4});
  change->config(config);
  EXPECT_EQ(numbers(*config.head_sink), (std::vector<int>{3, 2, 1, 0}));
}

TEST(TensorChange, OnlyPaddingIsFilled) {
  const auto plain = request_of(ragged(), TensorChange());
  const auto request = request_of(ragged(), *fill_padding(7));
  EXPECT_EQ(at(request.key, 1, 1, 0), at(plain.key, 1, 1, 0));
  EXPECT_EQ(at(request.key, 1, 2, 0), 7);
  EXPECT_EQ(at(request.query, 1, 3, 2), 7);
  EXPECT_EQ(at(request.value, 0, 3, 1), at(plain.value, 0, 3, 1));
}

TEST(TensorChange, ScalesAreExactAndLeaveThePoisonAlone) {
  const model::Scenario scenario = ragged(R"(,"poison":"huge")");
  const auto plain = request_of(scenario, TensorChange());
  const auto request = request_of(scenario, *scale_values(scenario, 3));
  EXPECT_EQ(at(request.value, 0, 2, 1), 8 * at(plain.value, 0, 2, 1));
  EXPECT_EQ(at(request.value, 1, 3, 1), at(plain.value, 1, 3, 1));  // Padding.
  EXPECT_EQ(at(request.key, 0, 2, 1), at(plain.key, 0, 2, 1));
  kernels::SessionConfig config;
  config.head_size = 16;
  scale_queries(2)->config(config);
  EXPECT_EQ(config.scale, 0.0625);  // 1 / sqrt(16), over 4.
}

/// Normal and subnormal numbers, those that become one of the other kind, and the ends of the
/// range.
TEST(TensorChange, ScalesEveryKindOfNumberOfEveryType) {
  using model::ElementType;
  for (const ElementType type :
       {ElementType::f32, ElementType::f16, ElementType::bf16, ElementType::f64}) {
    const double largest = model::largest_finite(type);
    const double tiny = 2 * model::subnormal_half_spacing(type);
    const double infinite = std::numeric_limits<double>::infinity();
    const std::vector<double> values{1.5,          -0.75,       0.0,         -0.0,     tiny,
                                     -3 * tiny,    1024 * tiny, 2048 * tiny, largest,  largest / 2,
                                     -largest / 4, largest / 8, infinite,    -infinite};
    const std::size_t width = model::element_bytes(type);
    Tensor tensor = Tensor::zeros(to_kernel(type), {1, 1, 1, std::ssize(values)});
    model::store_elements(type, values, tensor.bytes.data());
    for (const int exponent : {3, -3}) {
      kernels::StepResult result;
      result.output = tensor;
      scale_values(ragged(), -exponent)->answer(result);
      for (std::size_t i = 0; i < values.size(); ++i) {
        const double given = model::load_element(type, tensor.bytes.data() + i * width);
        const double scaled = model::round_to(type, std::ldexp(given, exponent));
        const double wanted = std::isinf(scaled) ? given : scaled;
        const double found = model::load_element(type, result.output->bytes.data() + i * width);
        EXPECT_EQ(found, wanted) << to_string(type) << " " << given << " " << exponent;
        EXPECT_EQ(std::signbit(found), std::signbit(wanted));
      }
    }
  }
}

TEST(TensorChange, AnswersComeBackAsThoseOfTheCaseItself) {
  const auto target = kernels::make_cpu_naive();
  const model::Scenario scenario = ragged(R"(,"qk_output":"biased")");
  const model::Timeline timeline(scenario);
  const model::Fill fill(scenario, timeline);
  const Execution plain = execute(*target, scenario, timeline, fill);
  ASSERT_TRUE(plain.complete);
  ExecuteOptions options;
  options.changes = {reorder_entries({1, 0}), reorder_heads({3, 2, 0, 1}, {1, 0}),
                     scale_values(scenario, 2), scale_queries(4)};
  const Execution changed = execute(*target, scenario, timeline, fill, options);
  ASSERT_TRUE(changed.complete);
  for (const std::size_t step : {0u, 2u}) {
    const auto& a = plain.steps[step].result;
    const auto& b = changed.steps[step].result;
    for (std::int64_t entry = 0; entry < 2; ++entry) {
      const auto& state = timeline.steps()[step].entries[static_cast<std::size_t>(entry)];
      for (std::int64_t query = 0; query < state.queries; ++query) {
        for (std::int64_t head = 0; head < 4; ++head) {
          EXPECT_EQ(at(*a.output, entry, query, head), at(*b.output, entry, query, head));
          EXPECT_EQ(at(*a.qk, entry, head, query), at(*b.qk, entry, head, query));
        }
      }
      for (std::int64_t row = 0; row < state.resident; ++row) {
        for (std::int64_t head = 0; head < 2; ++head) {
          EXPECT_EQ(at(a.rows->key, entry, head, row), at(b.rows->key, entry, head, row));
          EXPECT_EQ(at(a.rows->value, entry, head, row), at(b.rows->value, entry, head, row));
        }
      }
    }
  }
}

}  // namespace
}  // namespace kvcheck::properties
