// Own steps: which code computes a problem, and that all of them compute the same.
#include <cmath>
#include <string>

#include <gtest/gtest.h>

#include "kernels/bench/timed_step.h"
#include "kernels/cpu/flash/cpu_flash.h"
#include "kernels/cpu/naive/cpu_naive.h"

namespace kvcheck::kernels::bench {
namespace {

Problem small(std::string operation, std::int64_t length) {
  Problem problem;
  problem.operation = std::move(operation);
  problem.query_heads = 4;
  problem.kv_heads = 2;
  problem.head_size = 32;
  problem.length = length;
  return problem;
}

Problem windowed(std::string layout) {
  Problem problem = small("windowed", 40);
  problem.window = 4;
  problem.capacity = 6;
  problem.layout = std::move(layout);
  return problem;
}

void expect_same(Target& flash, Target& naive, const Problem& problem, double tolerance) {
  const auto fast = make_own_step(flash, problem, {});
  Problem plain = problem;
  // The plain kernel has a full cache with the same window, whatever the layout.
  if (problem.operation == "windowed") {
    plain.operation = "decode";
    plain.layout = "full";
    plain.capacity = 0;
  }
  const auto right = make_own_step(naive, plain, {});
  for (int i = 0; i < 3; ++i) time_once(*fast);
  EXPECT_GT(fast->cache_bytes(), 0);
  for (std::int64_t query = 0; query < problem.tokens(); ++query) {
    const auto a = fast->output(query), b = right->output(query);
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], tolerance) << i;
  }
}

TEST(OwnStep, TheEngineComputesWhatTheSessionDoes) {
  const auto flash = make_cpu_flash(), naive = make_cpu_naive();
  expect_same(*flash, *naive, small("decode", 300), 1e-6);
  expect_same(*flash, *naive, small("prefill", 70), 1e-6);
  Problem local = small("decode", 90);
  local.window = 10;
  expect_same(*flash, *naive, local, 1e-6);
  expect_same(*flash, *naive, windowed("block"), 1e-6);
  expect_same(*flash, *naive, windowed("min_overflow"), 1e-6);
  Problem half = small("decode", 40);
  half.element_type = "f16";
  expect_same(*flash, *naive, half, 1e-3);
}

TEST(OwnStep, QuantisedCachesHaveTargetsOfTheirOwn) {
  for (const char* kind : {"int8", "int4"}) {
    Problem problem = small("decode", 40);
    problem.element_type = kind;
    expect_same(*make_cpu_flash_quantised(kind), *make_cpu_naive_quantised(kind), problem, 1e-5);
  }
  Problem problem = small("decode", 4);
  EXPECT_EQ(own_target_name("cpu-flash", problem), "cpu-flash");
  problem.element_type = "int4";
  EXPECT_EQ(own_target_name("cpu-flash", problem), "cpu-flash-q4");
  problem.element_type = "int8";
  EXPECT_EQ(own_target_name("cpu-naive", problem), "cpu-naive-q8");
  EXPECT_EQ(own_target_name("cpu-naive+window_one_wide", problem), "cpu-naive+window_one_wide");
}

TEST(OwnStep, AWindowedRunIsAWholeCycle) {
  const auto flash = make_cpu_flash();
  EXPECT_EQ(make_own_step(*flash, windowed("block"), {})->steps(), 3);
  EXPECT_EQ(make_own_step(*flash, windowed("min_overflow"), {})->steps(), 1);
}

TEST(OwnStep, SmallPagesAreForTheStepsThatAskForThem) {
  const auto flash = make_cpu_flash();
  OwnOptions small_pages;
  small_pages.huge_pages = false;
  const Problem problem = small("decode", 20);
  const auto with = make_own_step(*flash, problem, {});
  const auto without = make_own_step(*flash, problem, small_pages);
  EXPECT_EQ(with->output(0), without->output(0));
}

TEST(OwnStep, HeadsOfAGroupOneByOneGiveTheSameOutputs) {
  const auto flash = make_cpu_flash();
  OwnOptions apart;
  apart.share_group = false;
  for (const char* operation : {"decode", "prefill"}) {
    const Problem problem = small(operation, 20);
    const auto with = make_own_step(*flash, problem, {});
    const auto without = make_own_step(*flash, problem, apart);
    time_once(*with);
    time_once(*without);
    EXPECT_EQ(with->output(0), without->output(0)) << operation;
  }
}

TEST(OwnStep, SaysWhatATargetCannotDo) {
  const auto flash = make_cpu_flash();
  const auto naive = make_cpu_naive();
  const auto refusal = [&](const Problem& problem, const OwnOptions& options,
                           Target& target) -> std::string {
    try {
      make_own_step(target, problem, options);
    } catch (const NotTimed& error) {
      return error.what();
    }
    return "";
  };
  OwnOptions apart;
  apart.share_group = false;
  EXPECT_EQ(refusal(small("decode", 4), apart, *naive),
            "cpu-naive always shares what it loads among a group's heads");
  Problem problem = small("decode", 4);
  problem.element_type = "int8";
  EXPECT_EQ(refusal(problem, {}, *flash), "cpu-flash has no int8 cache");
  problem = windowed("block");
  problem.capacity = 3;
  EXPECT_EQ(refusal(problem, {}, *flash).substr(0, 22), "the session is refused");
}

}  // namespace
}  // namespace kvcheck::kernels::bench
