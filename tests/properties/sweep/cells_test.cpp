// Boxes around hand-made members.
#include "properties/sweep/cells.h"

#include <gtest/gtest.h>

namespace kvcheck::properties {
namespace {

Grid small_grid() {
  Grid grid;
  grid.axes = {number_axis("past", {0, 1, 3}),
               {"mask", {"none", "boolean", "float", "short"}, false},
               number_axis("queries", {1, 2, 3, 4})};
  return grid;
}

using Place = std::array<std::int16_t, 3>;

/// Every place of the grid for which `wanted` holds.
Places places(const auto& wanted) {
  Places found(3);
  for (std::int16_t past = 0; past < 3; ++past) {
    for (std::int16_t mask = 0; mask < 4; ++mask) {
      for (std::int16_t queries = 0; queries < 4; ++queries) {
        const Place at{past, mask, queries};
        if (wanted(at)) found.add(at);
      }
    }
  }
  return found;
}

/// The words of the cell of `member`; all other places agree.
std::string words_of(const auto& member, bool exact = true) {
  const Grid grid = small_grid();
  const Cell cell = cell_of(grid, places(member),
                            places([&](const Place& at) { return !member(at); }), Places(3));
  EXPECT_EQ(cell.exact(), exact);
  return cell_words(grid, cell);
}

TEST(Cells, WordsOfNumbersSayMoreLessOrBetween) {
  EXPECT_EQ(words_of([](const Place& at) { return at[0] > 0; }), "past > 0");
  EXPECT_EQ(words_of([](const Place& at) { return at[0] == 2; }), "past = 3");
  EXPECT_EQ(words_of([](const Place& at) { return at[2] < 2; }), "queries < 3");
  EXPECT_EQ(words_of([](const Place& at) { return at[2] == 1 || at[2] == 2; }),
            "queries from 2 to 3");
  EXPECT_EQ(words_of([](const Place& at) { return at[2] == 0 || at[2] == 2; }), "queries = 1 or 3");
}

TEST(Cells, WordsOfNamesListTheFewer) {
  EXPECT_EQ(words_of([](const Place& at) { return at[1] == 1 || at[1] == 3; }),
            "mask = boolean or short");
  EXPECT_EQ(words_of([](const Place& at) { return at[1] != 0; }), "mask other than none");
}

TEST(Cells, SeveralAxesStandInTheirOrder) {
  EXPECT_EQ(words_of([](const Place& at) { return at[0] > 0 && at[1] == 2 && at[2] == 0; }),
            "past > 0, mask = float and queries = 1");
}

TEST(Cells, AllOfThemNeedNoWords) {
  EXPECT_EQ(words_of([](const Place&) { return true; }), "");
}

TEST(Cells, CountsWhatElseLiesInTheBox) {
  const Grid grid = small_grid();
  // Members: past 3 with one or two queries. Of the box queries < 3 and past = 3 one agrees and one
  // diverges for another cause.
  const auto in_box = [](const Place& at) { return at[0] == 2 && at[2] < 2; };
  const Place agrees{2, 0, 0}, other{2, 3, 1};
  const Cell cell = cell_of(
      grid, places([&](const Place& at) { return in_box(at) && at != agrees && at != other; }),
      places([&](const Place& at) { return at == agrees || !in_box(at); }),
      places([&](const Place& at) { return at == other; }));
  EXPECT_EQ(cell.members, 6);
  EXPECT_EQ(cell.agreeing, 1);
  EXPECT_EQ(cell.others, 1);
  EXPECT_FALSE(cell.exact());
  EXPECT_EQ(cell_words(grid, cell), "past = 3 and queries < 3");
}

TEST(Cells, ARestrictionThatKeepsNothingOutIsLeftOut) {
  const Grid grid = small_grid();
  // Members have past 0 and no mask; what agrees has a past, whatever the mask.
  const Cell cell = cell_of(grid, places([](const Place& at) { return at[0] == 0 && at[1] == 0; }),
                            places([](const Place& at) { return at[0] > 0; }), Places(3));
  ASSERT_EQ(cell.where.size(), 1u);
  EXPECT_EQ(cell.where[0], (Restriction{0, {0}}));
  EXPECT_EQ(restriction_values(grid, cell.where[0]), std::vector<std::string>{"0"});
}

}  // namespace
}  // namespace kvcheck::properties
