// Attended sets read back from outputs alone.
#include "properties/read_back.h"

#include <gtest/gtest.h>

#include "kernels/cpu/naive/cpu_naive.h"
#include "model/scenario_json.h"
#include "properties/digit_check.h"
#include "properties/position_text.h"
#include "tests/properties/reference_target.h"

namespace kvcheck::properties {
namespace {

/// Thread 34226: a past of 2, one query, two new keys.
model::Scenario causal_past() {
  return model::parse_scenario(R"({"schema":1,"operator":"attention","opset":23,"head_size":4,
      "steps":[{"past":2},{"append":2,"queries":1}]})");
}

std::vector<model::Position> positions(std::initializer_list<std::int64_t> values) {
  std::vector<model::Position> result;
  for (const auto v : values) result.push_back({v});
  return result;
}

TEST(ReadBack, ShowsTheContractOnAHealthyKernel) {
  const auto target = kernels::make_cpu_naive();
  const auto read_back = measure_visibility(*target, causal_past());
  ASSERT_EQ(read_back.queries.size(), 1u);
  EXPECT_TRUE(read_back.queries[0].agrees());
  EXPECT_EQ(read_back.queries[0].observed, positions({0, 1, 2}));
  for (const double weight : read_back.queries[0].weights) EXPECT_FLOAT_EQ(weight, 1.0f / 3);
}

TEST(ReadBack, NamesTheKeyThatLeaks) {
  const auto target = kernels::make_cpu_naive("causal_skipped_single_query");
  const auto read_back = measure_visibility(*target, causal_past());
  ASSERT_EQ(read_back.queries.size(), 1u);
  EXPECT_FALSE(read_back.queries[0].agrees());
  EXPECT_EQ(difference(read_back.queries[0].observed, read_back.queries[0].expected),
            positions({3}));
}

TEST(ReadBack, ReadsMoreTokensThanLanes) {
  const auto target = kernels::make_cpu_naive("window_one_wide");
  const auto scenario = model::parse_scenario(R"({"schema":1,"operator":"gqa","head_size":8,
      "query_heads":4,"kv_heads":2,"cache":{"layout":"block","capacity":40,"window_size":33},
      "steps":[{"append":37},{"append":1}]})");
  const auto read_back = measure_visibility(*target, scenario);
  const auto& last = read_back.queries.back();
  EXPECT_EQ(last.expected.size(), 33u);
  EXPECT_EQ(difference(last.observed, last.expected), positions({4}));
  EXPECT_TRUE(difference(last.expected, last.observed).empty());
}

TEST(ReadBack, MeasuresTheEdgesOfOneQueryAlone) {
  const auto scenario = model::parse_scenario(R"({"schema":1,"operator":"gqa","head_size":8,
      "query_heads":4,"kv_heads":2,"cache":{"layout":"block","capacity":40,"window_size":33},
      "steps":[{"append":37},{"append":1}]})");
  EXPECT_EQ(launches_to_measure(scenario), 5);  // 38 tokens in blocks of 8.
  const DigitMismatch last{1, 0, 2, 0};
  // The query sees 5 to 37: blocks 0 and 4 hold both ends.
  const auto healthy = measure_edges(*kernels::make_cpu_naive(), scenario, last);
  EXPECT_TRUE(healthy.agrees());
  EXPECT_EQ(healthy.expected, positions({5, 6, 7, 32, 33, 34, 35, 36, 37}));
  const auto wide = measure_edges(*kernels::make_cpu_naive("window_one_wide"), scenario, last);
  EXPECT_EQ(wide.head, 2);
  EXPECT_EQ(difference(wide.observed, wide.expected), positions({4}));
}

TEST(ReadBack, WorksWithOneLane) {
  const auto target = kernels::make_cpu_naive("causal_skipped_single_query");
  auto scenario = causal_past();
  scenario.head_size = scenario.value_head_size = 1;
  const auto read_back = measure_visibility(*target, scenario);
  EXPECT_EQ(read_back.queries.at(0).observed, positions({0, 1, 2, 3}));
  EXPECT_TRUE(check_digits(*target, scenario).mismatch.has_value());
  EXPECT_FALSE(check_digits(*kernels::make_cpu_naive(), scenario).mismatch.has_value());
}

TEST(ReadBack, SeesKeysBesideASink) {
  // A sink of logit 20 would leave a key less than the least f16; launches keep it near 0. Beside
  // one of logit 2 the only key has a weight of 0.12.
  const auto target = make_reference_target();
  for (const char* sink : {R"("head_sink":true,"element_type":"f16","fill":{"sink_logit":20})",
                           R"("smooth_softmax":true)"}) {
    const auto scenario = model::parse_scenario(
        R"({"schema":1,"operator":"gqa","head_size":8,"query_heads":8,"kv_heads":2,)" +
        std::string(sink) + R"(,"steps":[{"append":1}]})");
    for (const auto& query : measure_visibility(*target, scenario).queries) {
      EXPECT_TRUE(query.agrees()) << sink << ' ' << query.position.value << ' ' << query.head;
    }
    const auto check = check_digits(*target, scenario);
    EXPECT_FALSE(check.mismatch || check.blind) << sink;
    EXPECT_EQ(check.queries, 8);
  }
}

TEST(PositionsText, WritesRuns) {
  EXPECT_EQ(positions_text({}), "nothing");
  EXPECT_EQ(positions_text(positions({3})), "[3]");
  EXPECT_EQ(positions_text(positions({0, 1, 2, 5, 7, 8})), "[0..2, 5, 7..8]");
}

}  // namespace
}  // namespace kvcheck::properties
