// The grid as letters.
#include "reports/text_picture.h"

#include <gtest/gtest.h>

#include "reports/text.h"

namespace kvcheck::reports {
namespace {

using properties::VisibilityEvidence;

VisibilityGrid grid_of(std::vector<VisibilityEvidence> queries) {
  properties::StepEvidence step;
  step.visibility = std::move(queries);
  return make_visibility_grid(step);
}

VisibilityEvidence query(std::int64_t position, std::vector<std::int64_t> expected,
                         std::vector<std::int64_t> observed, bool measured = true) {
  return {0, 0, position, std::move(expected), std::move(observed), {}, measured};
}

TEST(TextPicture, SetsExpectedBesideObserved) {
  const auto lines =
      text_picture(grid_of({query(1, {0, 1}, {1, 3}), query(2, {0, 1, 2}, {}, false)}), 90);
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(lines[0], "Keys 0 to 3, batch entry 0, head 0:");
  EXPECT_EQ(lines[1], "query at   expected   observed");
  EXPECT_EQ(lines[2], "       1   ##..       o#.X");
  EXPECT_EQ(lines[3], "       2   ###.       ???.");
}

TEST(TextPicture, CutsAroundTheFirstDifference) {
  std::vector<std::int64_t> expected, observed;
  for (std::int64_t i = 0; i < 500; ++i) expected.push_back(i);
  observed = expected;
  observed.erase(observed.begin() + 400);
  const auto lines = text_picture(grid_of({query(499, expected, observed)}), 80);
  EXPECT_NE(lines[2].find('o'), std::string::npos) << lines[2];
  EXPECT_NE(lines[3].find("of 500 keys around the first difference"), std::string::npos);
  for (const auto& line : lines) EXPECT_LE(width(line), 80u);
}

TEST(TextPicture, PrefersQueriesThatDiffer) {
  std::vector<VisibilityEvidence> queries;
  for (std::int64_t i = 0; i < 50; ++i) queries.push_back(query(i, {0}, {0}));
  queries[45].observed = {0, 1};
  const auto lines = text_picture(grid_of(queries), 80);
  EXPECT_NE(lines[2].find("45"), std::string::npos) << lines[2];
  EXPECT_NE(lines[3].find("Cut to 1 of 50 queries"), std::string::npos) << lines[3];
}

TEST(TextPicture, IsEmptyWithoutRows) { EXPECT_TRUE(text_picture({}, 80).empty()); }

}  // namespace
}  // namespace kvcheck::reports
