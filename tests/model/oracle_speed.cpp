// Answers with bounds per second, for README; no test, as times prove nothing on shared machines.
//
// An answer: every output of one scenario with its bound, and the bound ratio of an observed value
// near the exact one. Medians of nine rounds.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <variant>
#include <vector>

#include "model/oracle.h"

namespace {

using namespace kvcheck::model;

Scenario small() {
  Scenario s;
  s.query_heads = 4;
  s.kv_heads = 2;
  s.cache = {LayoutKind::block, 6, 4, 0, 0};
  s.fill.kind = FillKind::needles;
  s.steps = {Append{{5}, {5}, 0}, Append{{2}, {2}, 0}, Rollback{{1}}, Append{{1}, {1}, 1}};
  return s;
}

Scenario decode(std::int64_t length, std::int64_t lanes) {
  Scenario s;
  s.head_size = s.value_head_size = lanes;
  s.fill.kind = FillKind::random;
  s.steps = {Past{{length - 1}}, Append{{1}, {1}, 0}};
  return s;
}

struct Count {
  std::int64_t outputs = 0;
  std::int64_t truths = 0;  // Outputs that the cheap tier handed over.
};

Count answer(const Scenario& scenario) {
  ArithmeticProfile profile;
  profile.output_type = scenario.element_type;
  Oracle oracle(scenario, profile);
  Count count;
  for (std::size_t step = 0; step < scenario.steps.size(); ++step) {
    const auto* append = std::get_if<Append>(&scenario.steps[step]);
    if (append == nullptr || !oracle.timeline().steps()[step].defined) continue;
    const Expected& expected = oracle.expected(step);
    std::size_t at = 0;
    for (std::int64_t i = 0; i < append->queries[0]; ++i) {
      for (std::int64_t h = 0; h < scenario.query_heads; ++h) {
        for (std::int64_t c = 0; c < scenario.value_head_size; ++c, ++at) {
          const double observed = expected.output[at] + expected.bound[at] / 4;
          oracle.bound_ratio(step, 0, i, h, c, observed);
          ++count.outputs;
        }
      }
    }
  }
  count.truths = oracle.truths_asked();
  return count;
}

void measure(const std::string& name, const Scenario& scenario) {
  using Clock = std::chrono::steady_clock;
  const auto seconds = [&](int answers) {
    const auto start = Clock::now();
    for (int i = 0; i < answers; ++i) answer(scenario);
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  const int answers = std::max(1, static_cast<int>(0.2 / std::max(1e-7, seconds(1))));
  std::vector<double> rates;
  for (int round = 0; round < 9; ++round) rates.push_back(answers / seconds(answers));
  std::sort(rates.begin(), rates.end());
  const Count count = answer(scenario);
  std::printf("%-12s %10.0f answers/s (quartiles %.0f to %.0f), %lld outputs each, %lld by truth\n",
              name.c_str(), rates[4], rates[2], rates[6], static_cast<long long>(count.outputs),
              static_cast<long long>(count.truths));
}

}  // namespace

int main() {
  measure("small", small());
  measure("T=512 D=64", decode(512, 64));
  measure("T=4096 D=128", decode(4096, 128));
}
