// Ranges of positions that a query may see.
#include <utility>

#include <gtest/gtest.h>

#include "kernels/cpu/key_range.h"
#include "tests/kernels/cpu_sequence.h"

namespace kvcheck::kernels {
namespace {

using Range = std::pair<std::int64_t, std::int64_t>;

Range range_of(const QueryCase& at) {
  const KeyRange range = key_range(at);
  return {range.begin, range.end};
}

/// Query 1 of 2 after a past of 4, eight keys: it stands at position 5.
QueryCase at_five() {
  QueryCase at;
  at.past = 4;
  at.length = at.anchor = 8;
  at.queries = 2;
  at.query = 1;
  return at;
}

TEST(KeyRange, WindowsReachBothWays) {
  QueryCase at = at_five();
  EXPECT_EQ(range_of(at), (Range{0, 6}));
  at.window = 3;
  EXPECT_EQ(range_of(at), (Range{3, 6}));
  at.right = 1;
  EXPECT_EQ(range_of(at), (Range{3, 6}));  // Causality is narrower.
  at.causal = false;
  EXPECT_EQ(range_of(at), (Range{3, 7}));
  at.right = 100;
  EXPECT_EQ(range_of(at), (Range{3, 8}));
  at.window = -1;
  at.right = 0;
  EXPECT_EQ(range_of(at), (Range{0, 6}));
}

TEST(KeyRange, OfQueriesFromTheEndMayBeEmpty) {
  QueryCase at = at_five();
  at.from_end = true;
  EXPECT_EQ(query_position(at), 7);
  at.length = at.anchor = 0;
  EXPECT_EQ(query_position(at), -1);
  EXPECT_EQ(range_of(at), (Range{0, 0}));
}

TEST(QueryCase, OfAStepWithoutTokensCountsFromTheEnd) {
  const SessionConfig gqa = full_cache();
  StepRequest request;
  request.tokens = {0, 0};
  request.queries = {2, 2};
  EXPECT_TRUE(asks_without_tokens(gqa, request));
  EXPECT_FALSE(asks_without_tokens(attention(), request));
  request.queries = {0, 0};
  EXPECT_FALSE(asks_without_tokens(gqa, request));
  request.tokens = {0, 1};
  request.queries = {0, 1};
  EXPECT_FALSE(asks_without_tokens(gqa, request));

  EntryPlan plan;
  plan.past = 5;
  EXPECT_EQ(query_position(query_case(gqa, plan, true, 2, 0)), 3);
  EXPECT_EQ(query_position(query_case(gqa, plan, false, 2, 0)), 5);
  EXPECT_EQ(query_position(query_case(nonpad(8), plan, false, 2, 1)), 4);
}

}  // namespace
}  // namespace kvcheck::kernels
