#include "properties/bench/output_check.h"

#include <limits>

#include <gtest/gtest.h>

#include "kernels/cpu/naive/cpu_naive.h"

namespace kvcheck::properties {
namespace {

using namespace kernels::bench;

Problem small(std::string operation, std::int64_t length) {
  Problem problem;
  problem.operation = std::move(operation);
  problem.query_heads = 4;
  problem.kv_heads = 2;
  problem.head_size = 16;
  problem.length = length;
  return problem;
}

/// Another step whose output of one query, head and lane lies elsewhere.
class Shifted : public TimedStep {
 public:
  Shifted(TimedStep& right, std::int64_t query, std::size_t element, double by)
      : right_(right), query_(query), element_(element), by_(by) {}
  void run() override {}
  std::vector<double> output(std::int64_t query) override {
    std::vector<double> found = right_.output(query);
    if (query == query_) found[element_] += by_;
    return found;
  }

 private:
  TimedStep& right_;
  std::int64_t query_;
  std::size_t element_;
  double by_;
};

void expect_held(const Problem& problem) {
  const auto target = kernels::make_cpu_naive();
  const auto step = make_session_step(*target, problem, {});
  const double ratio = worst_bound_ratio(problem, *step, target->capabilities());
  EXPECT_GT(ratio, 0);
  EXPECT_LE(ratio, 1);
}

TEST(OutputCheck, HoldsARightKernelInEveryElementType) {
  for (const char* type : {"f32", "f16", "bf16", "int8", "int4"}) {
    Problem problem = small("decode", 40);
    problem.head_size = 32;
    problem.element_type = type;
    const auto target = kernels::make_cpu_naive();
    if (problem.quantised() && !target->capabilities().has("cache_" + problem.element_type)) {
      continue;
    }
    SCOPED_TRACE(type);
    expect_held(problem);
  }
}

TEST(OutputCheck, HoldsPrefillWindowsAndWindowedCaches) {
  expect_held(small("prefill", 9));
  Problem local = small("decode", 20);
  local.window = 6;
  expect_held(local);
  Problem windowed = small("windowed", 20);
  windowed.window = 6;
  windowed.capacity = 8;
  windowed.layout = "block";
  expect_held(windowed);
}

TEST(OutputCheck, SeesAWindowThatIsOneTooWide) {
  const auto target = kernels::make_cpu_naive();
  Problem wide = small("decode", 20), right = wide;
  wide.window = 7;
  right.window = 6;
  const auto step = make_session_step(*target, wide, {});
  EXPECT_GT(worst_bound_ratio(right, *step, target->capabilities()), 1);
}

TEST(OutputCheck, SeesOneElementOfEachHeadAndQueryThatItLooksAt) {
  const auto target = kernels::make_cpu_naive();
  const Problem problem = small("prefill", 9);
  const auto step = make_session_step(*target, problem, {});
  for (const std::int64_t query : {0, 4, 8}) {
    for (const std::size_t head : {0u, 3u}) {
      Shifted shifted(*step, query, head * 16 + 5, 1e-4);
      EXPECT_GT(worst_bound_ratio(problem, shifted, target->capabilities()), 1) << query << head;
    }
  }
  Shifted nan(*step, 8, 0, std::numeric_limits<double>::quiet_NaN());
  EXPECT_GT(worst_bound_ratio(problem, nan, target->capabilities()), 1);
}

}  // namespace
}  // namespace kvcheck::properties
