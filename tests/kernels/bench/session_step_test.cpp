#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "kernels/bench/timed_step.h"
#include "kernels/cpu/naive/cpu_naive.h"

namespace kvcheck::kernels::bench {
namespace {

Problem small(std::string operation, std::int64_t length) {
  Problem problem;
  problem.operation = std::move(operation);
  problem.query_heads = 4;
  problem.kv_heads = 2;
  problem.head_size = 8;
  problem.length = length;
  return problem;
}

/// Attention of the query at `position` in double, from the definition.
std::vector<double> expected(const Problem& problem, std::int64_t position) {
  std::vector<double> output;
  const std::int64_t first =
      problem.window > 0 ? std::max<std::int64_t>(0, position + 1 - problem.window) : 0;
  for (std::int64_t head = 0; head < problem.query_heads; ++head) {
    const auto query = data_row(problem, DataTensor::query, head, position);
    std::vector<double> sums(query.size());
    double total = 0;
    for (std::int64_t token = first; token <= position; ++token) {
      const auto key = data_row(problem, DataTensor::key, head / 2, token);
      const auto value = data_row(problem, DataTensor::value, head / 2, token);
      double logit = 0;
      for (std::size_t i = 0; i < query.size(); ++i) logit += query[i] * key[i];
      const double weight = std::exp(logit / std::sqrt(8));
      total += weight;
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += weight * value[i];
    }
    for (const double sum : sums) output.push_back(sum / total);
  }
  return output;
}

void expect_near(const std::vector<double>& found, const std::vector<double>& right) {
  ASSERT_EQ(found.size(), right.size());
  for (std::size_t i = 0; i < right.size(); ++i) EXPECT_NEAR(found[i], right[i], 1e-6) << i;
}

TEST(SessionStep, DecodeRunsTheNewestTokenAgainAndAgain) {
  const auto target = make_cpu_naive();
  const Problem problem = small("decode", 5);
  const auto step = make_session_step(*target, problem, {});
  for (int i = 0; i < 3; ++i) EXPECT_GT(time_once(*step), 0);
  EXPECT_EQ(step->steps(), 1);
  expect_near(step->output(0), expected(problem, 4));
}

TEST(SessionStep, ALocalWindowIsPartOfTheProblem) {
  const auto target = make_cpu_naive();
  Problem problem = small("decode", 9);
  problem.window = 4;
  expect_near(make_session_step(*target, problem, {})->output(0), expected(problem, 8));
}

TEST(SessionStep, PrefillHasAnOutputForEachQuery) {
  const auto target = make_cpu_naive();
  const Problem problem = small("prefill", 6);
  const auto step = make_session_step(*target, problem, {});
  time_once(*step);
  for (const std::int64_t query : {0, 3, 5}) {
    expect_near(step->output(query), expected(problem, query));
  }
}

TEST(SessionStep, WindowedRunsAWholeCycle) {
  const auto target = make_cpu_naive();
  Problem problem = small("windowed", 20);
  problem.window = 4;
  problem.capacity = 6;
  problem.layout = "block";
  const auto step = make_session_step(*target, problem, {});
  EXPECT_EQ(step->steps(), 3);
  for (int i = 0; i < 3; ++i) time_once(*step);
  expect_near(step->output(0), expected(problem, 19));
}

TEST(SessionStep, SaysWhatATargetRefuses) {
  const auto target = make_cpu_naive();
  Problem problem = small("windowed", 4);
  problem.layout = "block";
  problem.window = 4;
  problem.capacity = 3;
  try {
    make_session_step(*target, problem, {});
    ADD_FAILURE() << "nothing was refused";
  } catch (const NotTimed& error) {
    EXPECT_EQ(std::string(error.what()).substr(0, 22), "the session is refused");
  }
}

}  // namespace
}  // namespace kvcheck::kernels::bench
