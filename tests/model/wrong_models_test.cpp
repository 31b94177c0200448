// Facts about the wrong models: each differs where it says so, and nowhere else.
#include "model/wrong_models.h"

#include <cctype>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "model/blindness.h"
#include "model/scenario_json.h"
#include "tests/model/families.h"
#include "tests/model/random_scenario.h"

namespace kvcheck::model {
namespace {

TEST(WrongModels, AreNamedOnceAndSpeakInSentences) {
  std::set<std::string_view> names;
  for (const WrongModel& model : wrong_models()) {
    EXPECT_TRUE(names.insert(model.name).second) << model.name;
    EXPECT_NE(model.name.find('.'), std::string_view::npos) << model.name;
    EXPECT_FALSE(model.statement.empty());
    EXPECT_TRUE(std::islower(static_cast<unsigned char>(model.statement.front())) ||
                model.statement.front() == 'W')
        << model.statement;
    EXPECT_EQ(find_wrong_model(model.name), &model);
  }
  EXPECT_GE(names.size(), 40u);
  EXPECT_EQ(find_wrong_model("causal.right"), nullptr);
}

TEST(WrongModels, EachChangesAnAnswer) {
  std::set<std::string_view> seen;
  for (const FillKind fill : {FillKind::random, FillKind::needles}) {
    for (const Family& family : families(11, {fill, 3}, ElementType::f32)) {
      ASSERT_TRUE(validate(family.scenario).empty())
          << family.name << " " << validate(family.scenario).front().message();
      for (const Separation& found : separations(family.scenario, {})) {
        if (found.ratio > kSeparationSeen) seen.insert(found.model->name);
      }
    }
  }
  for (const WrongModel& model : wrong_models()) EXPECT_TRUE(seen.count(model.name)) << model.name;
}

TEST(WrongModels, AreAskedOnlyWhereTheyConcernTheScenario) {
  ScenarioSource source(21, true);
  std::set<std::string_view> asked, left_out;
  for (int i = 0; i < 150; ++i) {
    const Scenario s = source.valid();
    std::set<std::string_view> found;
    for (const Separation& one : separations(s, {})) found.insert(one.model->name);
    for (const WrongModel& model : wrong_models()) {
      ASSERT_EQ(found.count(model.name) > 0, model.concerns(s)) << model.name;
      (model.concerns(s) ? asked : left_out).insert(model.name);
    }
  }
  EXPECT_EQ(asked.size(), wrong_models().size());
  EXPECT_GT(left_out.size(), wrong_models().size() / 2);
}

TEST(WrongModels, TheRightReadingSpelledOutIsTheRightOne) {
  ScenarioSource source(22, true);
  for (int i = 0; i < 60; ++i) {
    const Scenario s = source.valid();
    const WrongModel right_by_name{"right.spelled_out",
                                   "reads as the contract says",
                                   [](const Scenario&) { return true; },
                                   {}};
    Oracle right(s, {});
    EXPECT_EQ(separation(right, {}, right_by_name).ratio, 0);
  }
}

}  // namespace
}  // namespace kvcheck::model
