// What every batch entry holds after every step.
#include "model/timeline.h"

#include <algorithm>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "model/scenario_json.h"
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
  ScenarioSource source(11, true);
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
        if (s.cache.layout != LayoutKind::sinks) {
          ASSERT_EQ(entry.first_position.value, entry.length - entry.resident);
        }
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

TEST(Timeline, ARingThatHadFilledKeepsWhatARollbackLeaves) {
  Scenario s = block(8, 4, {tokens(10), Rollback{{3}}, tokens(2, 1), Rollback{{1}}, tokens(5, 2)});
  s.cache.layout = LayoutKind::ring;
  const Timeline timeline(s);
  const auto rows = [&](std::size_t step) {
    std::vector<std::int64_t> out;
    for (std::int64_t row = 0; row < 8; ++row) {
      const auto position = timeline.position_in_row(step, 0, {row});
      out.push_back(position ? position->value : -1);
    }
    return out;
  };
  using Rows = std::vector<std::int64_t>;
  EXPECT_EQ(rows(0), (Rows{8, 9, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(at(timeline, 0).max_exact_rollback, 4);
  // Positions 7, 8 and 9 are dropped; rows 0 and 1 held 0 and 1 before, which are lost.
  EXPECT_EQ(rows(1), (Rows{-1, -1, 2, 3, 4, 5, 6, -1}));
  EXPECT_EQ(at(timeline, 1).resident, 5);
  EXPECT_EQ(at(timeline, 1).first_position, Position{2});
  EXPECT_EQ(at(timeline, 1).max_exact_rollback, 1);
  EXPECT_EQ(at(timeline, 1).reach, 10);
  EXPECT_EQ(at(timeline, 2).evicted, 0);
  EXPECT_EQ(at(timeline, 2).max_exact_rollback, 3);
  EXPECT_EQ(rows(2), (Rows{8, -1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(timeline.row_of(2, 0, {8}), Row{0});
  EXPECT_FALSE(timeline.row_of(2, 0, {9}));
  EXPECT_EQ(rows(3), (Rows{-1, -1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(rows(4), (Rows{8, 9, 10, 11, 12, 5, 6, 7}));
  EXPECT_EQ(at(timeline, 4).evicted, 3);
  EXPECT_EQ(at(timeline, 4).reach, 13);
  EXPECT_TRUE(timeline.steps()[4].defined);
}

TEST(Timeline, ReasonsOfInexactRollbacksNameTheRow) {
  const auto reason = [](CacheSpec cache, std::int64_t length, std::int64_t drop) {
    Scenario s;
    s.cache = cache;
    s.steps = {tokens(length), Rollback{{drop}}};
    return Timeline(s).steps()[1].undefined_reason;
  };
  EXPECT_EQ(reason({LayoutKind::ring, 8, 4}, 10, 5),
            "rollback of 5 at T=10 is not exact: length 5 needs position 1 in row 1, which "
            "position 9 has taken; the largest exact depth there is 4");
  EXPECT_EQ(reason({LayoutKind::min_overflow, 6, 4}, 9, 1),
            "rollback of 1 at T=9 is not exact: length 8 needs position 2 in row 0, which "
            "position 3 has taken; the largest exact depth there is 0");
  EXPECT_EQ(reason({LayoutKind::sinks, 6, 4, 2}, 9, 1),
            "rollback of 1 at T=9 is not exact: length 8 needs position 4 in row 2, which "
            "position 5 has taken; the largest exact depth there is 0");
  EXPECT_EQ(reason({LayoutKind::paged, 9, 4, 0, 3}, 8, 2),
            "rollback of 2 at T=8 is not exact: length 6 needs position 0 in row 0, which "
            "is freed; the largest exact depth there is 1");
  EXPECT_EQ(reason({LayoutKind::block, 6, 4}, 12, 12),
            "rollback of 12 at T=12 is not exact: L(0)=0 but L(12)-12=-6; the largest exact "
            "depth there is 2");
  EXPECT_EQ(reason({LayoutKind::sinks, 6, 4, 2}, 9, 7), "");
  EXPECT_EQ(reason({LayoutKind::ring, 8, 4}, 10, 10), "");
}

/// Rows with the position and the generation that were written last, moved token by token.
class WrittenRows {
 public:
  explicit WrittenRows(const CacheSpec& cache)
      : cache_(cache), buffer_(static_cast<std::size_t>(cache.capacity)) {}

  void append(std::int64_t generation) {
    const std::int64_t capacity = cache_.capacity;
    if (cache_.layout == LayoutKind::ring) {
      buffer_[static_cast<std::size_t>(length_ % capacity)] = Token{{length_}, generation};
    } else if (live_ == capacity) {
      buffer_.erase(buffer_.begin() + cache_.sink_tokens);
      buffer_.push_back(Token{{length_}, generation});
    } else {
      buffer_[static_cast<std::size_t>(live_++)] = Token{{length_}, generation};
    }
    ++length_;
  }

  /// Drops the newest; false where that leaves a gap among the newest W or moves a row.
  bool roll_back(std::int64_t tokens) {
    const bool shifted = cache_.layout != LayoutKind::ring && length_ > cache_.capacity;
    length_ -= tokens;
    live_ = std::min(live_, length_);
    for (auto& token : buffer_) {
      if (token && token->position.value >= length_) token.reset();
    }
    if (shifted) return length_ <= cache_.sink_tokens;
    for (std::int64_t p = std::max<std::int64_t>(0, length_ - *cache_.window_size); p < length_;
         ++p) {
      const auto held = [&](const auto& token) { return token && token->position.value == p; };
      if (std::none_of(buffer_.begin(), buffer_.end(), held)) return false;
    }
    return true;
  }

  const std::vector<std::optional<Token>>& rows() const { return buffer_; }

 private:
  CacheSpec cache_;
  std::vector<std::optional<Token>> buffer_;
  std::int64_t length_ = 0, live_ = 0;
};

TEST(Timeline, RowsFollowRandomAppendsAndRollbacks) {
  ScenarioSource source(5, true);
  std::int64_t kept_gaps = 0, inexact = 0;
  for (int i = 0; i < 4000; ++i) {
    Scenario s;
    s.cache.layout = static_cast<LayoutKind>(source.between(2, 4));
    s.cache.window_size = source.between(1, 5);
    s.cache.sink_tokens = s.cache.layout == LayoutKind::sinks ? source.between(0, 3) : 0;
    s.cache.capacity = least_capacity(s.cache) + source.between(0, 6);
    std::int64_t length = 0;
    for (std::int64_t step = 0; step < 12; ++step) {
      const std::int64_t drop =
          length > 0 ? source.between(1, std::min<std::int64_t>(4, length)) : 0;
      s.steps.push_back(source.chance(40) && drop > 0 ? Step{Rollback{{drop}}}
                                                      : Step{tokens(source.between(1, 7), step)});
      length += std::holds_alternative<Rollback>(s.steps.back())
                    ? -drop
                    : std::get<Append>(s.steps.back()).tokens[0];
    }
    const Timeline timeline(s);
    WrittenRows written(s.cache);
    for (std::size_t step = 0; step < s.steps.size(); ++step) {
      const EntryStep& entry = at(timeline, step);
      if (const auto* rollback = std::get_if<Rollback>(&s.steps[step])) {
        const std::int64_t deepest = at(timeline, step - 1).max_exact_rollback;
        const bool exact = written.roll_back(rollback->tokens[0]);
        ASSERT_EQ(entry.rollback_exact, exact) << canonical_text(s) << " step " << step;
        ASSERT_TRUE(exact || rollback->tokens[0] > deepest);
        inexact += !exact;
        if (!exact) break;
      } else {
        const auto& append = std::get<Append>(s.steps[step]);
        for (std::int64_t n = append.tokens[0]; n > 0; --n) written.append(append.generation);
      }
      std::int64_t live = 0;
      for (std::size_t row = 0; row < written.rows().size(); ++row) {
        const auto& token = written.rows()[row];
        const auto position = timeline.position_in_row(step, 0, {static_cast<std::int64_t>(row)});
        ASSERT_EQ(position.has_value(), token.has_value())
            << canonical_text(s) << " step " << step << " row " << row;
        if (!token) continue;
        ++live;
        ASSERT_EQ(*position, token->position);
        ASSERT_EQ(timeline.generation(step, 0, *position), token->generation);
        ASSERT_EQ(timeline.row_of(step, 0, *position), Row{static_cast<std::int64_t>(row)});
      }
      ASSERT_EQ(entry.resident, live);
      kept_gaps += entry.reach > entry.length;
    }
  }
  EXPECT_GT(kept_gaps, 300);
  EXPECT_GT(inexact, 1000);
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
