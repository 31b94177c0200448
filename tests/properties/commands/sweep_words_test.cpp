// Sentences of hand-made results.
#include "properties/commands/sweep_words.h"

#include <limits>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace kvcheck::properties {
namespace {

Grid grid() {
  Grid made;
  made.name = "small";
  made.arithmetic = "2 x 3";
  made.axes = {number_axis("past", {0, 1}), number_axis("queries", {1, 2, 3})};
  made.count = 6;
  return made;
}

SweepGroup group() {
  SweepGroup made;
  made.property = "mask.visible_set";
  made.kind = Kind::leak;
  made.model = model::find_wrong_model("causal.skipped");
  made.explained_ratio = 0.25;
  made.asked_elsewhere = 5;
  made.text = "step 1: key [2] leaks";
  made.cell.members = 1;
  made.cell.where = {{0, {1}}, {1, {0}}};
  return made;
}

SweepRecord record(const Grid& of, const SweepGroup& with) {
  SweepRecord made{of, "mine", "1.0", "", "", {}, 2, {"f.json"}, {"kvcheck replay f"}};
  made.result.configurations = made.result.done = 6;
  made.result.agree = 4;
  made.result.diverge = 1;
  made.result.refused = 1;
  made.result.refusals = {{"does not claim softcap", 1}};
  made.result.explained = 1;
  made.result.groups = {with};
  made.result.all = with.cell;
  return made;
}

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(SweepWords, SayWhereWhyAndHowToReplay) {
  const Grid of = grid();
  const std::string text = sweep_text(record(of, group()));
  EXPECT_TRUE(says(text, "small: 6 configurations = 2 x 3\nmine 1.0\n")) << text;
  EXPECT_TRUE(says(text, "1 of 5 diverge: exactly those with past = 1 and queries = 1\n")) << text;
  EXPECT_TRUE(says(text, "all explained by causal.skipped: it leaves the causal rule out")) << text;
  EXPECT_TRUE(says(text, "  first: step 1: key [2] leaks\n  kvcheck replay f\n")) << text;
  EXPECT_TRUE(says(text, "1 does not claim softcap")) << text;
  EXPECT_FALSE(says(text, "not everywhere")) << text;
}

TEST(SweepWords, SayWhatElseLiesInTheCell) {
  const Grid of = grid();
  SweepGroup mixed = group();
  mixed.cell.agreeing = 1200;
  EXPECT_EQ(cell_sentence(record(of, mixed), mixed.cell),
            "1 of 5 diverge: all with past = 1 and queries = 1, where 1,200 agree");
  mixed.cell.others = 3;
  EXPECT_EQ(cell_sentence(record(of, mixed), mixed.cell),
            "1 of 5 diverge: all with past = 1 and queries = 1, where 1,200 agree and 3 diverge "
            "otherwise");
  mixed.differs_elsewhere = 4;
  EXPECT_TRUE(says(sweep_text(record(of, mixed)),
                   "it would have changed 4 of 5 agreeing configurations too"));
}

TEST(SweepWords, OfTwoTargetsSayWhoBreaksTheContract) {
  const Grid of = grid();
  SweepRecord two = record(of, group());
  two.against = "yours";
  two.against_version = "2.0";
  two.result.target_breaks = 1;
  const std::string text = sweep_text(two);
  EXPECT_TRUE(says(text, "mine 1.0 against yours 2.0")) << text;
  EXPECT_TRUE(says(text, "mine breaks the contract in 1, yours in 0")) << text;
  EXPECT_TRUE(says(text, "  mine breaks the contract\n")) << text;
  EXPECT_TRUE(says(text, "1 of 5 differ: exactly those with")) << text;
  EXPECT_EQ(sweep_json(two)["cells"][0]["breaks"], "target");
}

TEST(SweepWords, JsonHasTheFieldsThatScriptsRelyOn) {
  const Grid of = grid();
  SweepGroup endless = group();
  endless.ratio = std::numeric_limits<double>::infinity();
  const auto made = sweep_json(record(of, endless));
  for (const char* field : {"grid", "target", "against", "configurations", "agree", "diverge",
                            "refused", "explained", "seconds"}) {
    EXPECT_TRUE(made.contains(field)) << field;
  }
  EXPECT_EQ(made["against"], nullptr);
  EXPECT_EQ(made["cells"][0]["ratio"], "inf");
  EXPECT_EQ(made["cells"][0]["where"]["queries"][0], "1");
  EXPECT_EQ(made["diverging"]["configurations"], 1);
}

}  // namespace
}  // namespace kvcheck::properties
