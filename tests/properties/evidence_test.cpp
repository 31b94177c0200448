// The argument of a finding in words, and what is kept beside it.
#include "properties/evidence.h"

#include <gtest/gtest.h>

#include "kernels/cpu/naive/cpu_naive.h"
#include "model/scenario_json.h"
#include "properties/evidence_words.h"
#include "properties/search.h"

namespace kvcheck::properties {
namespace {

TEST(TimelineWords, SayWhatEachStepDoes) {
  const auto s = model::parse_scenario(R"({"schema":1,"operator":"gqa","head_size":8,
      "cache":{"layout":"block","capacity":6,"window_size":4},
      "steps":[{"past":5},{"append":2},{"rollback":1}]})");
  const auto words = timeline_words(s, model::Timeline(s));
  ASSERT_EQ(words.size(), 3u);
  EXPECT_EQ(words[0],
            "Step 0: the cache starts with 5 tokens (positions 0 to 4); 5 rows resident, position "
            "0 in row 0.");
  EXPECT_EQ(
      words[1],
      "Step 1: positions 5 to 6 appended, queries asked at positions 5 to 6; 4 rows resident, "
      "position 3 in row 0, 3 evicted, on a temporary buffer.");
}

TEST(TimelineWords, StopAfterTwelveAndSaySo) {
  std::string steps;
  for (int i = 0; i < 20; ++i) steps += std::string(i ? "," : "") + R"({"append":1})";
  const auto s = model::parse_scenario(R"({"schema":1,"operator":"gqa","steps":[)" + steps + "]}");
  const auto words = timeline_words(s, model::Timeline(s));
  ASSERT_EQ(words.size(), 13u);
  EXPECT_EQ(words.back(), "8 more such sentences are left out.");
}

TEST(VisibilityWords, NameBothWindowsOfAttention) {
  const auto s = model::parse_scenario(R"({"schema":1,"operator":"attention","opset":25,
      "causal":false,"cache":{"window_size":3},"right_window_size":1,"steps":[{"append":6}]})");
  MeasuredQuery query;
  query.query = 2;
  query.position = {2};
  for (std::int64_t p = 0; p <= 3; ++p) query.expected.push_back({p});
  query.observed = query.expected;
  query.observed.push_back({4});
  const auto words = visibility_words(s, model::Timeline(s), query);
  EXPECT_EQ(words.at(0),
            "The rule for query 2 of step 0 (position 2): there is no causal mask; window: no more "
            "than 2 keys before its own position; of those after its own position the first 1 "
            "alone.");
  EXPECT_EQ(words.at(3), "Key 4 is not among those: it leaks.");
}

TEST(Evidence, KeepsRowsThatDifferAndTheWorstElements) {
  const auto target = kernels::make_cpu_naive("compaction_one_row_short");
  const auto s = model::parse_scenario(R"({"schema":1,"operator":"gqa","head_size":8,
      "cache":{"layout":"block","capacity":6,"window_size":4},"fill":{"kind":"random","seed":1},
      "steps":[{"append":6},{"append":1}]})");
  const auto judgement = judge_fresh(*target, s, *find_property("cache.resident_range"));
  ASSERT_EQ(judgement.verdict, Verdict::failed);
  const auto evidence = collect_evidence(*target, s, judgement);
  EXPECT_EQ(evidence.failing_step, 1);
  ASSERT_EQ(evidence.steps.size(), 2u);
  EXPECT_TRUE(evidence.steps[0].rows.empty());
  ASSERT_FALSE(evidence.steps[1].rows.empty());
  EXPECT_NE(evidence.steps[1].rows[0].expected_position,
            evidence.steps[1].rows[0].observed_position);
  ASSERT_FALSE(evidence.steps[1].elements.empty());
  EXPECT_EQ(evidence.steps[1].elements.front().ratio, evidence.steps[1].max_ratio);
  EXPECT_EQ(evidence.steps[1].elements_compared, 8);
}

}  // namespace
}  // namespace kvcheck::properties
