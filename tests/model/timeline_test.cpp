// What every batch entry holds after every step.
#include "model/timeline.h"

#include <vector>

#include <gtest/gtest.h>

#include "tests/model/random_scenario.h"

namespace kvcheck::model {
namespace {

Scenario block(std::int64_t capacity, std::int64_t window, std::vector<Step> steps) {
  Scenario s;
  s.cache = {LayoutKind::block, capacity, window};
  s.steps = std::move(steps);
  return s;
}

Append tokens(std::int64_t n, std::int64_t generation = 0) { return {{n}, {n}, generation}; }

const EntryStep& at(const Timeline& timeline, std::size_t step, std::size_t entry = 0) {
  return timeline.steps()[step].entries[entry];
}

TEST(Timeline, ReportsTheLayoutAroundEveryStep) {
  const Timeline timeline(block(6, 4, {tokens(5), tokens(2), tokens(2), Rollback{{2}}}));
  EXPECT_EQ(at(timeline, 0).past, 0);
  EXPECT_EQ(at(timeline, 0).length, 5);
  EXPECT_EQ(at(timeline, 0).resident, 5);
  EXPECT_EQ(at(timeline, 0).evicted, 0);
  EXPECT_EQ(at(timeline, 0).max_exact_rollback, 5);
  EXPECT_FALSE(at(timeline, 0).staged);

  EXPECT_EQ(at(timeline, 1).past, 5);
  EXPECT_EQ(at(timeline, 1).length, 7);
  EXPECT_EQ(at(timeline, 1).queries, 2);
  EXPECT_EQ(at(timeline, 1).origin, Position{5});
  EXPECT_EQ(at(timeline, 1).resident, 4);
  EXPECT_EQ(at(timeline, 1).first_position, Position{3});
  EXPECT_EQ(at(timeline, 1).evicted, 3);
  EXPECT_EQ(at(timeline, 1).max_exact_rollback, 0);
  EXPECT_TRUE(at(timeline, 1).staged);

  EXPECT_FALSE(at(timeline, 2).staged);
  EXPECT_EQ(at(timeline, 2).resident, 6);
  EXPECT_EQ(at(timeline, 2).max_exact_rollback, 2);

  EXPECT_EQ(at(timeline, 3).past, 9);
  EXPECT_EQ(at(timeline, 3).length, 7);
  EXPECT_EQ(at(timeline, 3).queries, 0);
  EXPECT_EQ(at(timeline, 3).evicted, 0);
  EXPECT_TRUE(at(timeline, 3).rollback_exact);
  EXPECT_TRUE(timeline.steps()[3].defined);
  EXPECT_EQ(timeline.buffer_rows(), 6);
}

TEST(Timeline, InexactRollbackLeavesTheRestUndefinedWithTheReason) {
  const Timeline timeline(
      block(6, 4, {tokens(12), Rollback{{3}}, tokens(1, 1), Rollback{{4}}, tokens(1, 2)}));
  EXPECT_TRUE(timeline.steps()[0].defined);
  EXPECT_EQ(timeline.steps()[0].undefined_reason, "");
  EXPECT_FALSE(at(timeline, 1).rollback_exact);
  for (std::size_t step = 1; step < 5; ++step) {
    EXPECT_FALSE(timeline.steps()[step].defined) << step;
    // The first inexact rollback is the reason of all that follows, whatever comes later.
    EXPECT_EQ(timeline.steps()[step].undefined_reason,
              "rollback of 3 at T=12 is not exact: length 9 needs position 3 in row 0, which "
              "position 6 has taken; the largest exact depth there is 2")
        << step;
  }
  EXPECT_TRUE(at(timeline, 2).rollback_exact);
  EXPECT_EQ(at(timeline, 2).length, 10);
}

TEST(Timeline, InexactRollbackNamesTheEntryOfABatch) {
  Scenario s = block(6, 4, {Append{{3, 12}, {3, 12}, 0}, Rollback{{3, 3}}});
  s.batch = 2;
  const Timeline timeline(s);
  EXPECT_TRUE(at(timeline, 1, 0).rollback_exact);
  EXPECT_FALSE(at(timeline, 1, 1).rollback_exact);
  EXPECT_FALSE(timeline.steps()[1].defined);
  EXPECT_NE(timeline.steps()[1].undefined_reason.find("in batch entry 1"), std::string::npos);
}

TEST(Timeline, RollbackOfTheLargestExactDepthStaysDefined) {
  for (std::int64_t length = 1; length <= 20; ++length) {
    const Timeline before(block(6, 4, {tokens(length)}));
    const std::int64_t depth = at(before, 0).max_exact_rollback;
    if (depth > 0) {
      const Timeline exact(block(6, 4, {tokens(length), Rollback{{depth}}}));
      EXPECT_TRUE(exact.steps()[1].defined) << length;
    }
    if (depth < length) {
      const Timeline inexact(block(6, 4, {tokens(length), Rollback{{depth + 1}}}));
      EXPECT_FALSE(inexact.steps()[1].defined) << length;
    }
  }
}

TEST(Timeline, RaggedEntriesKeepTheirOwnLengths) {
  Scenario s = block(4, 2, {Append{{5, 2}, {5, 2}, 0}, Append{{0, 3}, {0, 3}, 0}});
  s.batch = 2;
  const Timeline timeline(s);
  EXPECT_EQ(at(timeline, 1, 0).past, 5);
  EXPECT_EQ(at(timeline, 1, 0).length, 5);
  EXPECT_EQ(at(timeline, 1, 0).evicted, 0);
  EXPECT_EQ(at(timeline, 1, 1).past, 2);
  EXPECT_EQ(at(timeline, 1, 1).length, 5);
  EXPECT_EQ(at(timeline, 1, 1).evicted, 3);
  EXPECT_EQ(at(timeline, 1, 1).origin, Position{2});
}

TEST(Timeline, NonpadOriginCountsBackFromTheEnd) {
  Scenario s;
  s.op = Operator::attention;
  s.opset = 24;
  s.batch = 2;
  s.nonpad_kv_seqlen = true;
  s.cache.capacity = 8;
  s.steps = {Append{{1, 5}, {3, 3}, 0}};
  const Timeline timeline(s);
  EXPECT_EQ(at(timeline, 0, 0).origin, Position{-2});
  EXPECT_EQ(at(timeline, 0, 1).origin, Position{2});
  EXPECT_EQ(timeline.buffer_rows(), 8);
}

TEST(Timeline, AttentionOriginIsThePast) {
  Scenario s;
  s.op = Operator::attention;
  s.opset = 23;
  s.steps = {Past{{3}}, Append{{2}, {1}, 0}, Append{{1}, {4}, 0}};
  const Timeline timeline(s);
  EXPECT_EQ(at(timeline, 0).past, 0);
  EXPECT_EQ(at(timeline, 0).length, 3);
  EXPECT_EQ(at(timeline, 1).origin, Position{3});
  EXPECT_EQ(at(timeline, 2).origin, Position{5});
  EXPECT_EQ(timeline.buffer_rows(), 6);
}

TEST(Timeline, BufferGrowsToTheLongestLengthEvenIfLaterRolledBack) {
  Scenario s;
  s.steps = {tokens(7), Rollback{{5}}, tokens(1, 1)};
  EXPECT_EQ(Timeline(s).buffer_rows(), 7);
}

TEST(Timeline, ReplacedTokensCarryTheGenerationOfTheirAppend) {
  Scenario s;
  s.steps = {tokens(4), Rollback{{2}}, tokens(1, 1), Rollback{{2}}, tokens(3, 2)};
  const Timeline timeline(s);
  const auto generations = [&](std::size_t step) {
    std::vector<std::int64_t> out;
    for (std::int64_t p = 0; p < at(timeline, step).length; ++p) {
      out.push_back(timeline.generation(step, 0, {p}));
    }
    return out;
  };
  using Counts = std::vector<std::int64_t>;
  EXPECT_EQ(generations(0), (Counts{0, 0, 0, 0}));
  EXPECT_EQ(generations(1), (Counts{0, 0}));
  EXPECT_EQ(generations(2), (Counts{0, 0, 1}));
  EXPECT_EQ(generations(3), (Counts{0}));
  EXPECT_EQ(generations(4), (Counts{0, 2, 2, 2}));
}

TEST(Timeline, AgreesWithListsOfTokensOnRandomScenarios) {
  ScenarioSource source(11);
  std::int64_t rewritten = 0, undefined = 0;
  for (int i = 0; i < 3000; ++i) {
    const Scenario s = source.valid();
    const Timeline timeline(s);
    ASSERT_EQ(timeline.steps().size(), s.steps.size());
    std::vector<std::vector<std::int64_t>> held(static_cast<std::size_t>(s.batch));
    for (std::size_t step = 0; step < s.steps.size(); ++step) {
      for (std::size_t b = 0; b < held.size(); ++b) {
        auto& list = held[b];
        ASSERT_EQ(at(timeline, step, b).past, static_cast<std::int64_t>(list.size()));
        if (const auto* append = std::get_if<Append>(&s.steps[step])) {
          list.insert(list.end(), static_cast<std::size_t>(append->tokens[b]), append->generation);
        } else if (const auto* past = std::get_if<Past>(&s.steps[step])) {
          list.assign(static_cast<std::size_t>(past->tokens[b]), 0);
        } else {
          list.resize(list.size() -
                      static_cast<std::size_t>(std::get<Rollback>(s.steps[step]).tokens[b]));
        }
        const EntryStep& entry = at(timeline, step, b);
        ASSERT_EQ(entry.length, static_cast<std::int64_t>(list.size()));
        ASSERT_EQ(entry.first_position.value, entry.length - entry.resident);
        for (std::size_t p = 0; p < list.size(); ++p) {
          ASSERT_EQ(timeline.generation(step, static_cast<std::int64_t>(b),
                                        {static_cast<std::int64_t>(p)}),
                    list[p]);
          rewritten += list[p] > 0;
        }
      }
      undefined += !timeline.steps()[step].defined;
    }
  }
  EXPECT_GT(rewritten, 1000);
  EXPECT_GT(undefined, 100);
}

TEST(Timeline, ManyRollbacksTakeMemoryInProportionToTheSteps) {
  // Every cycle leaves one more span; copying all of them each step would need gigabytes.
  Scenario s;
  constexpr std::int64_t kCycles = 20000;
  for (std::int64_t i = 0; i < kCycles; ++i) {
    s.steps.push_back(tokens(2, i));
    s.steps.push_back(Rollback{{1}});
  }
  const Timeline timeline(s);
  for (std::int64_t p = 0; p < kCycles; p += 997) {
    EXPECT_EQ(timeline.generation(2 * kCycles - 1, 0, {p}), p);
  }
}

TEST(Timeline, LengthsAtTheLimitDoNotOverflow) {
  const Timeline timeline(block(6, 4, {Past{{kMaxLength - 2}}, tokens(2), Rollback{{1}}}));
  EXPECT_EQ(at(timeline, 1).length, kMaxLength);
  // 2147483647 - 6 = 2147483641, of which 3 takes 715827881 blocks.
  EXPECT_EQ(at(timeline, 1).resident, kMaxLength - 3 * 715827881LL);
  EXPECT_EQ(at(timeline, 2).length, kMaxLength - 1);
}

}  // namespace
}  // namespace kvcheck::model
