// Which token a row holds.
#include "properties/row_content.h"

#include <gtest/gtest.h>

#include "model/scenario_json.h"
#include "properties/requests.h"

namespace kvcheck::properties {
namespace {

class RowContentTest : public testing::Test {
 protected:
  RowContentTest()
      : scenario_(model::parse_scenario(R"({"schema":1,"operator":"gqa","head_size":8,"batch":2,
            "query_heads":2,"kv_heads":2,"cache":{"layout":"full","capacity":6},
            "fill":{"kind":"random","seed":5},
            "steps":[{"past":4},{"rollback":1},{"append":1}]})")),
        timeline_(scenario_),
        fill_(scenario_, timeline_),
        content_(scenario_, timeline_, fill_),
        rows_(load_request(scenario_, timeline_, fill_, 0).rows) {}

  model::Scenario scenario_;
  model::Timeline timeline_;
  model::Fill fill_;
  RowContent content_;
  kernels::CacheRows rows_;
};

TEST_F(RowContentTest, MatchesTheTokenOfTheRightEntryHeadAndGeneration) {
  EXPECT_TRUE(content_.match(rows_, 1, 1, 2, {{2}, 0}).both());
  EXPECT_FALSE(content_.match(rows_, 1, 1, 2, {{3}, 0}).key);
  EXPECT_FALSE(content_.match(rows_, 1, 1, 3, {{3}, 1}).both());
}

TEST_F(RowContentTest, IdentifiesTokensByTheirKey) {
  const auto found = content_.identify(rows_, 0, 1, 3);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->position.value, 3);
  EXPECT_EQ(found->generation, 0);
  EXPECT_FALSE(content_.identify(rows_, 0, 1, 5).has_value());  // Poison.
}

TEST_F(RowContentTest, TellsKeysFromValues) {
  rows_.value.bytes[0] ^= std::byte{1};
  const auto match = content_.match(rows_, 0, 0, 0, {{0}, 0});
  EXPECT_TRUE(match.key);
  EXPECT_FALSE(match.value);
}

}  // namespace
}  // namespace kvcheck::properties
