// Cells of the visibility grid, its pooling and its sentence.
#include "reports/visibility_grid.h"

#include <limits>
#include <numeric>

#include <gtest/gtest.h>

#include "tests/reports/sample_records.h"

namespace kvcheck::reports {
namespace {

using properties::StepEvidence;
using properties::VisibilityEvidence;
using Keys = std::vector<std::int64_t>;

VisibilityEvidence query(std::int64_t position, Keys expected, Keys observed) {
  VisibilityEvidence evidence;
  evidence.query_position = position;
  evidence.expected = std::move(expected);
  evidence.observed = std::move(observed);
  evidence.measured = true;
  return evidence;
}

Keys range(std::int64_t begin, std::int64_t end) {
  Keys keys(static_cast<std::size_t>(end - begin));
  std::iota(keys.begin(), keys.end(), begin);
  return keys;
}

TEST(VisibilityGrid, ClassifiesEveryCell) {
  StepEvidence step;
  step.visibility = {query(1, {0, 1}, {1, 3})};
  const VisibilityGrid grid = make_visibility_grid(step);
  ASSERT_EQ(grid.rows.size(), 1u);
  EXPECT_EQ(grid.rows[0].cells,
            (std::vector<Cell>{Cell::missing, Cell::seen, Cell::hidden, Cell::leak}));
  EXPECT_EQ(grid.missing, 1);
  EXPECT_EQ(grid.leaked, 1);
  EXPECT_EQ(grid.agreed, 2);
  EXPECT_TRUE(grid.differs());
}

TEST(VisibilityGrid, DoesNotCallAnUnreadQueryADifference) {
  StepEvidence step;
  step.visibility = {query(1, {0, 1}, {})};
  step.visibility[0].measured = false;
  const VisibilityGrid grid = make_visibility_grid(step);
  EXPECT_FALSE(grid.differs());
  EXPECT_EQ(grid.unmeasured, 1);
  EXPECT_EQ(grid.rows[0].cells, (std::vector<Cell>{Cell::unmeasured, Cell::unmeasured}));
}

TEST(VisibilityGrid, ShowsTheHeadWithTheMostDifferences) {
  StepEvidence step;
  step.visibility = {query(0, {0}, {0}), query(0, {0}, {0, 1}), query(0, {0}, {0, 1, 2})};
  step.visibility[1].head = 1;
  step.visibility[2].head = 2;
  const VisibilityGrid grid = make_visibility_grid(step);
  EXPECT_EQ(grid.head, 2);
  EXPECT_EQ(grid.groups, 3);
  EXPECT_EQ(grid.groups_differing, 2);
}

TEST(VisibilityGrid, OrdersQueriesByPosition) {
  StepEvidence step;
  step.visibility = {query(7, {7}, {7}), query(-1, {}, {}), query(3, {3}, {3})};
  const VisibilityGrid grid = make_visibility_grid(step);
  EXPECT_EQ(grid.rows[0].query_position, -1);
  EXPECT_EQ(grid.rows[2].query_position, 7);
}

TEST(VisibilityGrid, PoolsLargeGridsByTheWorstCell) {
  StepEvidence step;
  for (std::int64_t i = 0; i < 600; ++i)
    step.visibility.push_back(query(i, range(0, 600), range(0, 600)));
  step.visibility[300].expected.pop_back();
  const VisibilityGrid grid = make_visibility_grid(step);
  EXPECT_EQ(grid.key_pool, 3);
  EXPECT_EQ(grid.query_pool, 3);
  EXPECT_EQ(grid.columns, 200);
  ASSERT_EQ(grid.pooled.size(), 200u);
  EXPECT_EQ(grid.pooled[100][199], Cell::leak);
  EXPECT_EQ(grid.pooled[100][198], Cell::seen);
  EXPECT_EQ(grid.leaked, 1);
}

TEST(VisibilityGrid, SurvivesKeysThatAreFarApart) {
  StepEvidence step;
  step.visibility = {query(0, {0}, {0, std::numeric_limits<std::int64_t>::max()})};
  const VisibilityGrid grid = make_visibility_grid(step);
  EXPECT_LE(grid.columns, kMaxCells);
  EXPECT_EQ(grid.leaked, 1);
}

TEST(VisibilityGrid, IsEmptyWithoutEvidence) {
  const VisibilityGrid grid = make_visibility_grid({});
  EXPECT_TRUE(grid.rows.empty());
  EXPECT_EQ(difference_sentence(grid), "");
}

TEST(DifferenceSentence, NamesKeysAndWeights) {
  StepEvidence step;
  step.visibility = {query(1, {0, 1}, {1, 3})};
  step.visibility[0].weights = {0.75, 0.25};
  EXPECT_EQ(difference_sentence(make_visibility_grid(step)),
            "The query at position 1 sees key 3 (weight 0.25), which it may not see, and does not "
            "see key 0, which it must see.");
}

TEST(DifferenceSentence, CountsWhatItDoesNotName) {
  StepEvidence step;
  for (int i = 0; i < 5; ++i) step.visibility.push_back(query(i, {0}, {}));
  const std::string sentence = difference_sentence(make_visibility_grid(step));
  EXPECT_NE(sentence.find("position 2 "), std::string::npos);
  EXPECT_EQ(sentence.find("position 3 "), std::string::npos);
  EXPECT_TRUE(sentence.ends_with(" 2 more queries differ.")) << sentence;
}

}  // namespace
}  // namespace kvcheck::reports
