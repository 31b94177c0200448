// Visible sets against the contract's examples and a definition written the other way round.
#include "model/visibility.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "model/mask.h"
#include "tests/model/random_scenario.h"

namespace kvcheck::model {
namespace {

using Counts = std::vector<std::int64_t>;

std::vector<std::int64_t> seen(const Scenario& scenario, std::size_t step, std::int64_t entry,
                               std::int64_t query, std::int64_t head = 0) {
  const Timeline timeline(scenario);
  std::vector<std::int64_t> keys;
  for (const Position key : visible_positions(scenario, timeline, step, entry, head, query)) {
    keys.push_back(key.value);
  }
  return keys;
}

Scenario attention(std::vector<Step> steps) {
  Scenario s;
  s.op = Operator::attention;
  s.opset = 24;
  s.steps = std::move(steps);
  return s;
}

Scenario gqa(std::optional<std::int64_t> window, std::vector<Step> steps) {
  Scenario s;
  s.cache.window_size = window;
  s.steps = std::move(steps);
  return s;
}

TEST(AttentionVisibility, OneQueryWithoutPastSeesOnlyTheFirstKey) {
  EXPECT_EQ(seen(attention({Append{{4}, {1}, 0}}), 0, 0, 0), (Counts{0}));
}

TEST(AttentionVisibility, PastShiftsTheDiagonal) {
  // past 2, Sq=1, Skv=2: keys 0..2, not 3.
  EXPECT_EQ(seen(attention({Past{{2}}, Append{{2}, {1}, 0}}), 1, 0, 0), (Counts{0, 1, 2}));
}

TEST(AttentionVisibility, QueriesBeyondTheLastKeySeeAllKeys) {
  // Sq=2, Skv=1, past 2: both rows see keys 0..2.
  const Scenario s = attention({Past{{2}}, Append{{1}, {2}, 0}});
  EXPECT_EQ(seen(s, 1, 0, 0), (Counts{0, 1, 2}));
  EXPECT_EQ(seen(s, 1, 0, 1), (Counts{0, 1, 2}));
}

TEST(AttentionVisibility, ShortNonpadLeavesLeadingQueriesEmpty) {
  // nonpad=1, Sq=3: rows 0 and 1 are empty, row 2 sees key 0.
  Scenario s = attention({Append{{1}, {3}, 0}});
  s.nonpad_kv_seqlen = true;
  s.cache.capacity = 4;
  EXPECT_EQ(seen(s, 0, 0, 0), (Counts{}));
  EXPECT_EQ(seen(s, 0, 0, 1), (Counts{}));
  EXPECT_EQ(seen(s, 0, 0, 2), (Counts{0}));
}

TEST(AttentionVisibility, NonpadAlignsEachEntryAtItsOwnEnd) {
  // Continued decode of two entries with 8 and 5 live rows of 8.
  Scenario s = attention({Append{{7, 4}, {0, 0}, 0}, Append{{1, 1}, {1, 1}, 0}});
  s.batch = 2;
  s.nonpad_kv_seqlen = true;
  s.cache.capacity = 8;
  EXPECT_EQ(seen(s, 1, 0, 0), (Counts{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(seen(s, 1, 1, 0), (Counts{0, 1, 2, 3, 4}));
}

TEST(AttentionVisibility, WithoutCausalEveryLiveKeyIsSeen) {
  Scenario s = attention({Append{{4}, {2}, 0}});
  s.causal = false;
  EXPECT_EQ(seen(s, 0, 0, 0), (Counts{0, 1, 2, 3}));
  EXPECT_EQ(seen(s, 0, 0, 1), (Counts{0, 1, 2, 3}));
}

TEST(GqaVisibility, WindowCountsTheQueryItself) {
  const Scenario s = gqa(2, {Append{{5}, {5}, 0}});
  EXPECT_EQ(seen(s, 0, 0, 0), (Counts{0}));
  EXPECT_EQ(seen(s, 0, 0, 1), (Counts{0, 1}));
  EXPECT_EQ(seen(s, 0, 0, 4), (Counts{3, 4}));
}

TEST(GqaVisibility, WindowOfOneSeesOnlyTheQueryPosition) {
  EXPECT_EQ(seen(gqa(1, {Append{{3}, {3}, 0}}), 0, 0, 2), (Counts{2}));
}

TEST(GqaVisibility, WithoutWindowEveryEarlierKeyIsSeen) {
  const Scenario s = gqa({}, {Append{{3}, {3}, 0}, Append{{2}, {2}, 0}});
  EXPECT_EQ(seen(s, 1, 0, 0), (Counts{0, 1, 2, 3}));
  EXPECT_EQ(seen(s, 1, 0, 1), (Counts{0, 1, 2, 3, 4}));
}

TEST(GqaVisibility, SinksAreSeenBesidesTheWindow) {
  Scenario s = gqa(3, {Append{{9}, {9}, 0}});
  s.cache = {LayoutKind::sinks, 6, 3, 2};
  EXPECT_EQ(seen(s, 0, 0, 0), (Counts{0}));
  EXPECT_EQ(seen(s, 0, 0, 1), (Counts{0, 1}));
  EXPECT_EQ(seen(s, 0, 0, 3), (Counts{0, 1, 2, 3}));
  EXPECT_EQ(seen(s, 0, 0, 4), (Counts{0, 1, 2, 3, 4}));
  EXPECT_EQ(seen(s, 0, 0, 5), (Counts{0, 1, 3, 4, 5}));
  EXPECT_EQ(seen(s, 0, 0, 8), (Counts{0, 1, 6, 7, 8}));
  // Only the layout of that name has them.
  s.cache = {LayoutKind::ring, 6, 3};
  EXPECT_EQ(seen(s, 0, 0, 8), (Counts{6, 7, 8}));
}

TEST(GqaVisibility, LayoutDoesNotChangeWhatIsSeen) {
  Scenario s = gqa(4, {Append{{9}, {9}, 0}, Append{{3}, {3}, 0}});
  const auto full = seen(s, 1, 0, 1);
  s.cache.layout = LayoutKind::block;
  s.cache.capacity = 6;
  EXPECT_EQ(full, (Counts{7, 8, 9, 10}));
  EXPECT_EQ(seen(s, 1, 0, 1), full);
}

TEST(GqaVisibility, RaggedEntriesSeeTheirOwnLengths) {
  Scenario s = gqa({}, {Append{{4, 1}, {4, 1}, 0}, Append{{1, 1}, {1, 1}, 0}});
  s.batch = 2;
  EXPECT_EQ(seen(s, 1, 0, 0), (Counts{0, 1, 2, 3, 4}));
  EXPECT_EQ(seen(s, 1, 1, 0), (Counts{0, 1}));
}

/// The definition: a key is seen when it exists and no rule takes it away.
bool is_seen(const Scenario& s, std::int64_t past, std::int64_t length, std::int64_t queries,
             std::int64_t longest, std::int64_t entry, std::int64_t head, std::int64_t query,
             std::int64_t key) {
  const std::int64_t columns = s.nonpad_kv_seqlen ? s.cache.capacity : longest;
  if (key >= columns - s.mask.missing_columns) return false;
  const bool at_the_end = s.nonpad_kv_seqlen || (s.op == Operator::gqa && length == past);
  const std::int64_t offset = at_the_end ? length - queries : past;
  if (key < 0 || key >= length) return false;
  if (s.causal && key > query + offset) return false;
  const bool sink = s.cache.layout == LayoutKind::sinks && key < s.cache.sink_tokens;
  if (s.cache.window_size && !sink && query + offset - key >= *s.cache.window_size) return false;
  if (s.right_window_size && key - (query + offset) > *s.right_window_size) return false;
  if (s.fill.kind == FillKind::literal) return true;  // The masks that repair makes hide nothing.
  return !mask_hides(s, entry, head, {query + offset}, {key});
}

TEST(Visibility, AgreesWithTheDefinitionOnRandomScenarios) {
  ScenarioSource source(5, true);
  std::int64_t empty = 0, windowed = 0, masked = 0;
  for (int i = 0; i < 1500; ++i) {
    const Scenario s = source.valid();
    const Timeline timeline(s);
    std::vector<std::int64_t> lengths(static_cast<std::size_t>(s.batch), 0);
    for (std::size_t step = 0; step < s.steps.size() && timeline.steps()[step].defined; ++step) {
      const auto* append = std::get_if<Append>(&s.steps[step]);
      std::int64_t longest = 0;
      for (const EntryStep& e : timeline.steps()[step].entries) {
        longest = std::max(longest, e.length);
      }
      for (std::int64_t b = 0; b < s.batch; ++b) {
        const auto at = static_cast<std::size_t>(b);
        const std::int64_t past = lengths[at];
        lengths[at] = timeline.steps()[step].entries[at].length;
        if (!append) continue;
        for (std::int64_t h = 0; h < s.query_heads; ++h) {
          for (std::int64_t q = 0; q < append->queries[at]; ++q) {
            std::vector<Position> expected;
            for (std::int64_t key = -3; key < lengths[at] + 3; ++key) {
              if (is_seen(s, past, lengths[at], append->queries[at], longest, b, h, q, key))
                expected.push_back({key});
            }
            ASSERT_EQ(visible_positions(s, timeline, step, b, h, q), expected);
            empty += expected.empty();
            windowed += !expected.empty() && expected.front().value > 0;
            masked += s.mask.kind != MaskKind::none;
          }
        }
      }
    }
  }
  EXPECT_GT(empty, 100);
  EXPECT_GT(windowed, 100);
  EXPECT_GT(masked, 100);
}

TEST(Visibility, MaskHidesWithinTheCausalSet) {
  Scenario s = attention({Append{{6}, {6}, 0}});
  s.mask.kind = MaskKind::boolean;
  s.mask.hidden_percent = 100;
  for (std::int64_t query = 0; query < 6; ++query) EXPECT_EQ(seen(s, 0, 0, query), (Counts{}));
  s.mask.hidden_percent = 0;
  EXPECT_EQ(seen(s, 0, 0, 2), (Counts{0, 1, 2}));
}

}  // namespace
}  // namespace kvcheck::model
