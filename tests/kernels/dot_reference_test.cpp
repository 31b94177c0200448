// The bf16 dot products against attention in double, and the bits that they promise.
#include <cmath>
#include <random>
#include <span>

#include <gtest/gtest.h>

#include "tests/kernels/dot_sequence.h"

namespace kvcheck::kernels::flash {
namespace {

struct Numbers {
  Floats queries, keys, values;
};

/// Normal numbers in bf16; `tokens` of them, each with its query.
Numbers drawn(const SessionConfig& config, std::int64_t tokens, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  const auto draw = [&](std::int64_t heads, std::int64_t lanes) {
    Floats numbers(static_cast<std::size_t>(tokens * heads * lanes));
    for (float& number : numbers) {
      const Bfloat narrow = to_bfloat(normal(generator));
      number = element_at(&narrow, 0);
    }
    return numbers;
  };
  return {draw(config.query_heads, config.head_size), draw(config.kv_heads, config.head_size),
          draw(config.kv_heads, config.value_head_size)};
}

/// One row [token][head][lane].
std::span<const float> row(const Floats& numbers, std::int64_t heads, std::int64_t lanes,
                           std::int64_t token, std::int64_t head) {
  return std::span(numbers).subspan(static_cast<std::size_t>((token * heads + head) * lanes),
                                    static_cast<std::size_t>(lanes));
}

/// Output of one query row in double, with what the arithmetic may move it by.
struct Expected {
  std::vector<double> output, bound;
};

Expected expected_of(const SessionConfig& config, const Numbers& numbers, std::int64_t token,
                     std::int64_t head) {
  constexpr double u = 0x1p-24;
  const std::int64_t group = config.query_heads / config.kv_heads, kv_head = head / group;
  const std::int64_t first =
      config.window_size < 0 ? 0 : std::max<std::int64_t>(0, token - config.window_size + 1);
  const auto query = row(numbers.queries, config.query_heads, config.head_size, token, head);
  std::vector<double> weights;
  double most = -INFINITY, least = INFINITY, error = 0, sum = 0;
  for (std::int64_t key = first; key <= token; ++key) {
    const auto keys = row(numbers.keys, config.kv_heads, config.head_size, key, kv_head);
    double dot = 0, size = 0;
    for (std::size_t lane = 0; lane < query.size(); ++lane) {
      dot += static_cast<double>(query[lane]) * keys[lane];
      size += std::abs(static_cast<double>(query[lane]) * keys[lane]);
    }
    const double scale = config.scale;
    weights.push_back(dot * scale);
    most = std::max(most, dot * scale);
    least = std::min(least, dot * scale);
    // A chain over the lanes, and the scale: given, so one rounding.
    error = std::max(error, static_cast<double>(config.head_size) * u * size * scale * 1.001);
  }
  for (double& weight : weights) sum += weight = std::exp(weight - most);
  // Exponents: logit, subtraction, exp of it and of each rescale and merge, rounding to bf16.
  const auto count = static_cast<double>(weights.size());
  const double rescales = std::ceil(count / 64) + 1;
  const double exponent = 2 * error + u * (most - least + 2 * error) + 0x1p-17 +
                          rescales * 0x1p-23 + 0x1p-8 / (1 - 0x1p-8);
  const double grown = std::expm1(exponent);
  // Sums: one rounding for each key, rescale and merge, of the products and of the weights.
  const double rounded = (count + 2 * rescales + 16) * u * 1.001;
  Expected expected;
  const auto lanes = static_cast<std::size_t>(config.value_head_size);
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    double output = 0, size = 0, spread = 0;
    const auto value = [&](std::size_t i) {
      return static_cast<double>(row(numbers.values, config.kv_heads, config.value_head_size,
                                     first + static_cast<std::int64_t>(i), kv_head)[lane]);
    };
    for (std::size_t i = 0; i < weights.size(); ++i) {
      output += weights[i] / sum * value(i);
      size += weights[i] / sum * std::abs(value(i));
    }
    for (std::size_t i = 0; i < weights.size(); ++i) {
      spread += weights[i] / sum * std::abs(value(i) - output) * grown;
    }
    expected.output.push_back(output);
    expected.bound.push_back(spread / (1 - grown) + 2 * rounded * (1 + grown) * size +
                             3 * u * std::abs(output) + 0x1p-126);
  }
  return expected;
}

SessionConfig heads(std::int64_t query_heads, std::int64_t kv_heads, std::int64_t head_size,
                    std::int64_t value_head_size, std::int64_t capacity) {
  SessionConfig config = DotSequence::one_head(head_size, capacity);
  config.query_heads = query_heads;
  config.kv_heads = kv_heads;
  config.value_head_size = value_head_size;
  config.scale = 1 / std::sqrt(static_cast<float>(head_size));
  return config;
}

/// Largest error over bound of some queries of a prefill.
double worst_ratio(const SessionConfig& config, std::int64_t tokens, unsigned seed) {
  const Numbers numbers = drawn(config, tokens, seed);
  DotSequence sequence(config);
  const Floats output = sequence.append(numbers.queries, numbers.keys, numbers.values);
  double worst = 0;
  const std::int64_t step = std::max<std::int64_t>(1, tokens / 5);
  for (std::int64_t back = 0; back < tokens; back += step) {
    const std::int64_t token = tokens - 1 - back;
    for (std::int64_t head = 0; head < config.query_heads; ++head) {
      const Expected expected = expected_of(config, numbers, token, head);
      const auto found = row(output, config.query_heads, config.value_head_size, token, head);
      for (std::size_t lane = 0; lane < found.size(); ++lane) {
        const double error = std::abs(found[lane] - expected.output[lane]);
        worst = std::max(worst, error / expected.bound[lane]);
        if (std::isnan(found[lane])) return INFINITY;
      }
    }
  }
  return worst;
}

TEST(DotReference, KeepsItsBoundAtEveryEdge) {
  SKIP_WITHOUT_DOT_PRODUCTS();
  double worst = 0;
  for (const std::int64_t tokens :
       {1, 2, 3, 15, 16, 17, 31, 33, 63, 64, 65, 127, 128, 129, 511, 512, 513, 577, 1025}) {
    for (const std::int64_t window : {-1, 1, 2, 63, 64, 65, 513}) {
      SessionConfig config = heads(4, 2, 16, 16, tokens);
      config.window_size = window;
      const double ratio = worst_ratio(config, tokens, static_cast<unsigned>(tokens + window));
      EXPECT_LE(ratio, 1) << tokens << " tokens, window " << window;
      worst = std::max(worst, ratio);
    }
  }
  // Far below 1 something would be wrong with the bound, not with the kernel.
  EXPECT_GT(worst, 0.05);
}

TEST(DotReference, KeepsItsBoundForEveryShape) {
  SKIP_WITHOUT_DOT_PRODUCTS();
  for (const std::int64_t lanes : {1, 2, 7, 8, 31, 32, 33, 48, 64, 65, 96, 128, 256}) {
    for (const std::int64_t group : {1, 2, 3, 5, 8}) {
      EXPECT_LE(worst_ratio(heads(2 * group, 2, lanes, lanes, 150), 150, 7), 1)
          << lanes << " lanes, group of " << group;
    }
  }
  SessionConfig config = heads(2, 1, 24, 24, 70);
  config.op = "attention";
  config.opset = 23;
  config.value_head_size = 40;
  EXPECT_LE(worst_ratio(config, 70, 8), 1);
}

/// Outputs of the last query of every step, bit for bit.
Floats in_steps(DotSequence& sequence, const SessionConfig& config, const Numbers& numbers,
                std::int64_t tokens, std::span<const std::int64_t> steps) {
  Floats outputs;
  std::int64_t done = 0;
  const auto part = [&](const Floats& all, std::int64_t count) {
    const std::int64_t width = static_cast<std::int64_t>(all.size()) / tokens;
    return Floats(all.begin() + done * width, all.begin() + (done + count) * width);
  };
  for (std::size_t i = 0; done < tokens; ++i) {
    const std::int64_t count = std::min(steps[i % steps.size()], tokens - done);
    const Floats output = sequence.append(part(numbers.queries, count), part(numbers.keys, count),
                                          part(numbers.values, count));
    outputs.insert(outputs.end(), output.begin(), output.end());
    done += count;
  }
  EXPECT_EQ(static_cast<std::int64_t>(outputs.size()),
            tokens * config.query_heads * config.value_head_size);
  return outputs;
}

TEST(DotReference, SplitsCapacitiesAndThreadsGiveTheSameBits) {
  SKIP_WITHOUT_DOT_PRODUCTS();
  constexpr std::int64_t kTokens = 1100, kWindow = 77;
  for (const std::int64_t group : {1, 4, 6}) {
    SessionConfig config = heads(2 * group, 2, 40, 40, kTokens);
    config.window_size = kWindow;
    const Numbers numbers = drawn(config, kTokens, 3);
    DotSequence whole(config);
    const Floats bits = whole.append(numbers.queries, numbers.keys, numbers.values);
    for (const std::vector<std::int64_t>& steps :
         {std::vector<std::int64_t>{1}, {3, 1, 64, 7}, {200, 1, 1}}) {
      DotSequence full(config);
      EXPECT_EQ(in_steps(full, config, numbers, kTokens, steps), bits) << "full, " << steps[0];
      for (const std::int64_t capacity : {kWindow, kWindow + 1, kWindow + 64}) {
        SessionConfig windowed = config;
        windowed.layout = "block";
        windowed.capacity = capacity;
        windowed.threads = capacity % 2 == 0 ? 2 : 1;
        DotSequence sequence(windowed);
        EXPECT_EQ(in_steps(sequence, windowed, numbers, kTokens, steps), bits)
            << "capacity " << capacity << ", " << steps[0];
      }
    }
  }
  SessionConfig config = heads(4, 1, 64, 64, 1300);
  const Numbers numbers = drawn(config, 1300, 4);
  DotSequence one(config);
  config.threads = 2;
  DotSequence two(config);
  EXPECT_EQ(one.append(numbers.queries, numbers.keys, numbers.values),
            two.append(numbers.queries, numbers.keys, numbers.values));
}

}  // namespace
}  // namespace kvcheck::kernels::flash
