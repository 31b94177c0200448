// What every grid keeps to.
#include "properties/sweep/grid.h"

#include <set>

#include <gtest/gtest.h>

#include "model/scenario_json.h"

namespace kvcheck::properties {
namespace {

TEST(Grid, IsFoundByName) {
  ASSERT_EQ(grids().size(), 3u);
  EXPECT_EQ(find_grid("causal-past")->name, "causal-past");
  EXPECT_EQ(find_grid("windowed-small")->name, "windowed-small");
  EXPECT_EQ(find_grid("tiles")->name, "tiles");
  EXPECT_EQ(find_grid("causal"), nullptr);
}

TEST(Grid, EveryConfigurationIsValidAndHasAPlaceOnEveryAxis) {
  for (const Grid& grid : grids()) {
    for (std::int64_t i = 0; i < grid.count; i += 7) {
      const Configuration made = grid.at(i);
      const auto refusals = model::validate(made.scenario);
      ASSERT_TRUE(refusals.empty()) << grid.name << " " << i << ": " << refusals.front().message();
      ASSERT_EQ(made.at.size(), grid.axes.size()) << grid.name;
      for (std::size_t a = 0; a < made.at.size(); ++a) {
        ASSERT_GE(made.at[a], 0) << grid.name << " " << i << " " << grid.axes[a].name;
        ASSERT_LT(static_cast<std::size_t>(made.at[a]), grid.axes[a].values.size())
            << grid.name << " " << i << " " << grid.axes[a].name;
      }
    }
  }
}

TEST(Grid, NoConfigurationComesTwice) {
  for (const Grid& grid : grids()) {
    std::set<std::string> seen;
    for (std::int64_t i = 0; i < grid.count; ++i) {
      model::Scenario scenario = grid.at(i).scenario;
      scenario.fill.seed = scenario.mask.seed = 0;  // Data alone makes no configuration.
      ASSERT_TRUE(seen.insert(model::canonical_text(scenario)).second) << grid.name << " " << i;
    }
  }
}

TEST(Grid, CountsAreWrittenInGroupsOfThree) {
  EXPECT_EQ(with_commas(0), "0");
  EXPECT_EQ(with_commas(999), "999");
  EXPECT_EQ(with_commas(1000), "1,000");
  EXPECT_EQ(with_commas(50688), "50,688");
  EXPECT_EQ(with_commas(-1234567), "-1,234,567");
}

}  // namespace
}  // namespace kvcheck::properties
