// Planted faults whose reading is known.
#include "properties/sweep/readings.h"

#include <gtest/gtest.h>

#include "kernels/cpu/naive/cpu_naive.h"
#include "properties/sweep/outcome.h"
#include "tests/properties/sweep/sub_grid.h"

namespace kvcheck::properties {
namespace {

struct Split {
  std::vector<std::int64_t> diverging, agreeing;
};

Split judged(const Grid& grid, kernels::Target& target) {
  Split split;
  for (std::int64_t i = 0; i < grid.count; ++i) {
    Case c(target, grid.at(i).scenario);
    const bool diverges = judge_configuration(c, false).outcome == SweepOutcome::diverge;
    (diverges ? split.diverging : split.agreeing).push_back(i);
  }
  return split;
}

/// Name of the reading that explains every diverging configuration; "" where there is no one.
std::string reading_of(const char* fault, int count, Explanations* out = nullptr) {
  const Grid grid = sub_grid(*find_grid("causal-past"), 3, 31);
  const auto make = [&] { return kernels::make_cpu_naive(fault); };
  Workers workers = workers_of(count, make);
  const Split split = judged(grid, *make());
  EXPECT_FALSE(split.diverging.empty());
  const auto explained = explain_configurations(workers, grid, split.diverging, split.agreeing);
  if (out) *out = explained;
  std::string name;
  for (const ReadingFound& found : explained.found) {
    if (!found.model) return "";
    if (!name.empty() && name != found.model->name) return "";
    name = found.model->name;
    EXPECT_LE(found.ratio, 1);
  }
  return name;
}

TEST(Readings, OfSeveralThatExplainTheOneIsTakenThatChangesFewestOthers) {
  // Leaving the causal rule out altogether and counting from the end explain it just as well.
  for (const int workers : {1, 3}) {
    EXPECT_EQ(reading_of("causal_skipped_single_query", workers), "causal.skipped_for_one_query");
  }
}

TEST(Readings, AreHeldAgainstWhatAgrees) {
  Explanations explained;
  EXPECT_EQ(reading_of("causal_top_left_with_past", 2, &explained), "causal.top_left");
  const auto& elsewhere = *std::find_if(
      explained.elsewhere.begin(), explained.elsewhere.end(),
      [](const ReadingElsewhere& item) { return item.model->name == "causal.top_left"; });
  EXPECT_EQ(elsewhere.asked, 192);
  EXPECT_EQ(elsewhere.differs, 0);
}

TEST(Readings, NearestOneOfAConfigurationIsASentence) {
  const Grid& grid = *find_grid("causal-past");
  std::int64_t i = 0;
  while (grid.at(i).at[3] != 0 || grid.at(i).at[4] != 1 || grid.at(i).at[5] != 1 ||
         grid.at(i).at[6] != 1) {
    ++i;
  }
  Workers broken =
      workers_of(1, [] { return kernels::make_cpu_naive("causal_skipped_single_query"); });
  EXPECT_NE(nearest_reading(broken, grid, i, false).find("explained on every row"),
            std::string::npos);
  Workers healthy = workers_of(1, [] { return kernels::make_cpu_naive(); });
  EXPECT_EQ(nearest_reading(healthy, grid, i, false), "");
}

}  // namespace
}  // namespace kvcheck::properties
