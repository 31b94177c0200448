// Facts that the figures must show.
#include "reports/figures.h"

#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "reports/legend.h"
#include "reports/slot_lanes.h"
#include "reports/step_table.h"
#include "tests/reports/html_reader.h"
#include "tests/reports/sample_records.h"

namespace kvcheck::reports {
namespace {

using test::Node;

std::unique_ptr<Node> read(const Element& element) {
  return test::read_html("<!doctype html>" + element.html());
}

int count_class(const Node& root, std::string_view name) {
  int found = 0;
  for_each(root, [&](const Node& node) {
    if (const auto* value = node.attribute("class"); value && *value == name) ++found;
  });
  return found;
}

/// Shapes of one colour, without those of the legend's words.
std::string path_of(const Node& root, std::string_view name) {
  std::string data;
  for_each(root, [&](const Node& node) {
    const auto* value = node.attribute("class");
    if (node.tag == "path" && value && *value == name && data.empty()) data = *node.attribute("d");
  });
  return data;
}

TEST(TimelineFigure, SaysRowsLimitsAndTheFirstDivergence) {
  const auto record = samples::record("rows_after_rollback");
  const CaseView view = make_case_view(record.findings[0]);
  const auto root = read(timeline_figure(view, 0, window_around(5, 3, 96), "f"));
  const std::string text = root->all_text();
  EXPECT_NE(text.find("Resident rows after each step: 4, 6, 4, 5, 5."), std::string::npos) << text;
  EXPECT_NE(text.find("First divergence: step 3, append 1."), std::string::npos);
  EXPECT_NE(text.find("capacity 6"), std::string::npos);
  EXPECT_NE(text.find("window 4"), std::string::npos);
  EXPECT_NE(text.find("staged on a temporary buffer"), std::string::npos);
  EXPECT_NE(text.find("evicted by the step"), std::string::npos);
  EXPECT_NE(text.find("rolled back"), std::string::npos);
  EXPECT_NE(text.find("4′"), std::string::npos) << "the second content of position 4";
  EXPECT_NE(text.find("row 4 after step 3: must hold position 4, holds position 4"),
            std::string::npos);
}

TEST(TimelineFigure, NamesOnlyWhatOccursInItsLegend) {
  const auto record = samples::record("leak");
  const CaseView view = make_case_view(record.findings[0]);
  const std::string text = read(timeline_figure(view, 0, window_around(2, 1, 96), "f"))->all_text();
  EXPECT_EQ(text.find("staged"), std::string::npos);
  EXPECT_EQ(text.find("evicted"), std::string::npos);
  EXPECT_EQ(text.find("capacity"), std::string::npos);
}

TEST(ChooseLanes, KeepsRowsThatDifferInLargeBuffers) {
  const auto record = samples::record("large");
  const CaseView view = make_case_view(record.findings[0]);
  const Lanes lanes = choose_lanes(view, 0);
  EXPECT_EQ(lanes.rows, std::vector<std::int64_t>{70});
  EXPECT_EQ(lanes.note, "The buffer has 600 rows; drawn: 1 row that differs.");
}

TEST(VisibilityFigure, DrawsLeaksAsCrossesAndMissingKeysAsRings) {
  const auto leak = samples::record("leak");
  const CaseView leak_view = make_case_view(leak.findings[0]);
  const auto leak_grid = make_visibility_grid(leak.findings[0].evidence.steps[1]);
  const auto leak_root = read(visibility_svg(leak_grid, leak_view, "f", 440));
  EXPECT_EQ(path_of(*leak_root, "s-failed").find('a'), std::string::npos) << "no arc in a cross";
  EXPECT_NE(leak_root->all_text().find("leak: seen, must not be"), std::string::npos);
  EXPECT_NE(leak_root->all_text().find("query at 1, key 2: leak: must not be seen"),
            std::string::npos);

  const auto missing = samples::record("missing_key");
  const CaseView view = make_case_view(missing.findings[0]);
  const auto grid = make_visibility_grid(missing.findings[0].evidence.steps[1]);
  const auto root = read(visibility_svg(grid, view, "f", 440));
  EXPECT_NE(path_of(*root, "s-failed").find('a'), std::string::npos) << "rings are arcs";
  EXPECT_NE(root->all_text().find("in the cache: 3 to 8 (3 evicted)"), std::string::npos);
}

TEST(RowsFigure, SetsWhatARowMustHoldAboveWhatItHolds) {
  const auto record = samples::record("rows_after_rollback");
  const CaseView view = make_case_view(record.findings[0]);
  const auto root = read(rows_figure(view, "f"));
  const std::string text = root->all_text();
  EXPECT_NE(text.find("After step 3, row 4 must hold position 4 (generation 1), holds position 4."),
            std::string::npos)
      << text;
  EXPECT_EQ(count_class(*root, "bad"), 1);
}

TEST(Gauge, SaysErrorAndBound) {
  const auto record = samples::record("over_bound");
  const auto& worst = record.findings[0].evidence.steps[0].elements[0];
  const std::string text = read(gauge_svg(worst, "f"))->all_text();
  EXPECT_NE(text.find("error 3.82e-06, 9.6 times the bound"), std::string::npos) << text;
  EXPECT_NE(text.find("bound: weights 60 %, sums 25 %, underflow 0 %, store 15 %"),
            std::string::npos);
}

TEST(Gauge, NamesWhatIsNotFinite) {
  const auto record = samples::record("not_finite");
  const auto& worst = record.findings[0].evidence.steps[0].elements[0];
  EXPECT_NE(read(gauge_svg(worst, "f"))->all_text().find("observed nan"), std::string::npos);
}

TEST(ElementTable, StatesHowManyOfTheWorstItShows) {
  const auto record = samples::record("over_bound");
  const auto& elements = record.findings[0].evidence.steps[0].elements;
  const auto root = read(element_table(elements, "f"));
  EXPECT_NE(root->all_text().find("10 of the 14 recorded"), std::string::npos);
  int rows = 0;
  for_each(*root, [&](const Node& node) { rows += node.tag == "tr" ? 1 : 0; });
  EXPECT_EQ(rows, 11);
}

TEST(Histogram, SetsBinsBeyondTheBoundApart) {
  const auto record = samples::record("over_bound");
  const auto root = read(histogram_figure(record.errors[0], "f"));
  EXPECT_NE(root->all_text().find("5 elements beyond the bound."), std::string::npos);
  EXPECT_FALSE(path_of(*root, "s-failed").empty());
  const auto green = read(histogram_figure(samples::record("passed").errors[0], "f"));
  EXPECT_NE(green->all_text().find("none beyond the bound."), std::string::npos);
}

TEST(Histogram, SurvivesARecordWithOtherBins) {
  properties::ErrorRecord record;
  record.histogram.assign(40, 1);
  EXPECT_NO_THROW(read(histogram_figure(record, "f")));
  record.histogram = {std::numeric_limits<std::int64_t>::min()};
  EXPECT_NO_THROW(read(histogram_figure(record, "f")));
}

TEST(StepTable, GivesEveryStepAnAddressAndItsFacts) {
  const auto record = samples::record("rows_after_rollback");
  const CaseView view = make_case_view(record.findings[0]);
  const auto root = read(step_table(view, window_around(5, 3, 96), "f"));
  const Node* failing = nullptr;
  for_each(*root, [&](const Node& node) {
    if (const auto* id = node.attribute("id"); id && *id == "f-step-3") failing = &node;
  });
  ASSERT_NE(failing, nullptr);
  EXPECT_EQ(*failing->attribute("data-verdict"), "failed");
  EXPECT_EQ(*failing->attribute("data-event"), "append");
  EXPECT_EQ(*failing->attribute("data-step"), "3");
}

TEST(TokenText, TellsGenerationsApart) {
  EXPECT_EQ(token_text(4, 0), "position 4");
  EXPECT_EQ(token_text(4, 2), "position 4 (generation 2)");
  EXPECT_EQ(token_text(-1, 0), "no token of this sequence");
  EXPECT_EQ(token_text(-2, 0), "anything");
  EXPECT_EQ(token_mark(4, 2), "4′′");
  EXPECT_EQ(token_mark(4, 9), "4 g9");
}

TEST(Legend, BreaksIntoLines) {
  const std::vector<LegendItem> items(5, {Look::solid, "resident", "resident"});
  EXPECT_LT(legend_height(items, 2000), legend_height(items, 200));
  EXPECT_EQ(legend_height({}, 200), 0);
}

}  // namespace
}  // namespace kvcheck::reports
