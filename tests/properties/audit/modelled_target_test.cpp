// Facts about the target that answers by the model: healthy without a reading, and where a reading
// has nothing to say; wrong exactly where it has.
#include "properties/audit/modelled_target.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "model/scenario_json.h"
#include "properties/audit/scenario_source.h"
#include "properties/case.h"
#include "properties/catalog.h"
#include "properties/diagnosis.h"

namespace kvcheck::properties {
namespace {

/// A prompt of 9 tokens with 2 query heads, one after the other entry; window 4.
model::Scenario windowed() {
  return model::parse_scenario(R"({"schema":1,"operator":"gqa","batch":2,"query_heads":2,
      "kv_heads":1,"head_size":8,"cache":{"layout":"block","capacity":7,"window_size":4},
      "fill":{"kind":"needles","seed":5},
      "steps":[{"append":9},{"append":1},{"rollback":1},{"append":1},{"append":1}]})");
}

std::vector<std::string> failed(kernels::Target& target, const model::Scenario& scenario) {
  std::vector<std::string> ids;
  Case c(target, scenario);
  for (const Property& property : catalog()) {
    if (!property.inapplicable(scenario, target.capabilities()).empty()) continue;
    if (property.judge(c).verdict == Verdict::failed) ids.push_back(property.id);
  }
  return ids;
}

TEST(ModelledTarget, WithoutAReadingKeepsTheContract) {
  const auto target = make_modelled_target(nullptr);
  EXPECT_TRUE(failed(*target, windowed()).empty());
  const ScenarioSource source(target->capabilities(), {3, 0, {}});
  std::int64_t judged = 0;
  for (std::uint64_t i = 600; judged < 60; ++i) {
    const auto scenario = source.at(i);
    if (!scenario) continue;
    ++judged;
    for (const std::string& id : failed(*target, *scenario)) {
      ADD_FAILURE() << id << ": " << model::canonical_text(*scenario);
    }
  }
}

TEST(ModelledTarget, AnswersByTheContractWhereTheReadingHasNothingToSay) {
  // There is no softcap in the scenario.
  const auto target = make_modelled_target(model::find_wrong_model("softcap.ignored"));
  EXPECT_TRUE(failed(*target, windowed()).empty());
  EXPECT_EQ(target->capabilities().name, "model+softcap.ignored");
}

TEST(ModelledTarget, IsExplainedByItsReadingOnEveryRow) {
  const auto target = make_modelled_target(model::find_wrong_model("window.one_more"));
  Case c(*target, windowed());
  const auto found = explain_rows(c, c.execution());
  // Queries 4 to 8 of the prompt and the three single tokens, in 2 entries and 2 heads.
  EXPECT_EQ(found.failing, (5 + 3) * 2 * 2);
  EXPECT_EQ(found.rows, (9 + 3) * 2 * 2);
  ASSERT_TRUE(found.every_row());
  EXPECT_EQ(found.readings.front().model->name, "window.one_more");
}

TEST(ModelledTarget, InOneRowIsWrongThereAlone) {
  const auto target = make_modelled_target(model::find_wrong_model("window.one_more"), true);
  Case c(*target, windowed());
  // Of the positions 3, 8, 13: at 3 the window is not full yet, 8 is in the prompt, and 13 does
  // not come. Head 1 of 2 of the last entry alone.
  EXPECT_EQ(explain_rows(c, c.execution()).failing, 1);
  const auto ids = failed(*target, windowed());
  EXPECT_NE(std::find(ids.begin(), ids.end(), "mask.visible_set"), ids.end());
}

TEST(ModelledTarget, RefusesStepsThatTheScenarioDoesNotHold) {
  const auto target = make_modelled_target(nullptr);
  const model::Scenario scenario = windowed();
  Case c(*target, scenario);
  ASSERT_TRUE(c.execution().complete);  // Told by now.
  auto opened = target->open({});
  const auto session = std::move(std::get<std::unique_ptr<kernels::Session>>(opened));
  kernels::StepRequest request;
  request.tokens = request.queries = {9, 8};
  EXPECT_TRUE(std::holds_alternative<kernels::Refusal>(session->step(request)));
  const std::vector<std::int64_t> one{1, 1};
  EXPECT_TRUE(std::holds_alternative<kernels::Refusal>(session->rollback(one)));
  EXPECT_TRUE(std::holds_alternative<kernels::Refusal>(session->load({})));
  request.tokens = request.queries = {9, 9};
  EXPECT_TRUE(std::holds_alternative<kernels::StepResult>(session->step(request)));
}

TEST(ModelledTarget, RefusesWhatItWasNotTold) {
  const auto target = make_modelled_target(nullptr);
  const auto opened = target->open({});
  EXPECT_TRUE(std::holds_alternative<kernels::Refusal>(opened));
}

}  // namespace
}  // namespace kvcheck::properties
