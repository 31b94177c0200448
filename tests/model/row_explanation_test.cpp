// Facts about explained rows: counts that follow from the readings, and what no reading explains.
#include "model/row_explanation.h"

#include <algorithm>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "model/scenario_json.h"
#include "tests/model/families.h"

namespace kvcheck::model {
namespace {

/// Answers exactly as the oracle expects.
Observed answers_of(Oracle& target) {
  return [&target](const ElementAt& at) -> std::optional<double> {
    const Expected& all = target.expected(at.step);
    return all.output[element_index(target.scenario(), all, at.entry, at.query, at.head, at.lane)];
  };
}

/// A prompt of 4 tokens, 2 heads: 8 rows, and then one token more: 2 rows.
Scenario prompt_and_token() {
  return parse_scenario(R"({"schema":1,"operator":"gqa","query_heads":2,"kv_heads":1,"head_size":8,
      "fill":{"kind":"needles","seed":5},"steps":[{"append":4},{"append":1}]})");
}

const ReadingShare* share_of(const RowExplanation& found, std::string_view name) {
  const auto it = std::find_if(found.readings.begin(), found.readings.end(),
                               [&](const ReadingShare& one) { return one.model->name == name; });
  return it == found.readings.end() ? nullptr : &*it;
}

RowExplanation explain_answers_of(const Scenario& s, const Reading& reading) {
  Oracle right(s, {});
  Oracle target(s, {}, reading);
  return explain_rows(right, {}, answers_of(target));
}

TEST(RowExplanation, CountsTheRowsThatEachReadingExplains) {
  // Without the causal rule the queries 0 to 2 of the prompt see more than they should, in both
  // heads; query 3 and the last token see everything anyhow.
  const auto found =
      explain_answers_of(prompt_and_token(), find_wrong_model("causal.skipped")->reading);
  EXPECT_EQ(found.rows, 10);
  EXPECT_EQ(found.failing, 6);
  EXPECT_EQ(found.by_contract(), 4);
  EXPECT_EQ(found.not_finite, 0);
  EXPECT_GT(found.contract_ratio, 1);
  EXPECT_TRUE(found.every_row());
  const ReadingShare* skipped = share_of(found, "causal.skipped");
  ASSERT_NE(skipped, nullptr);
  EXPECT_EQ(skipped->rows, 10);
  EXPECT_EQ(skipped->failing, 6);
  EXPECT_LE(skipped->worst_ratio, 1);
  // One key more is the same for query 2 alone, in both heads.
  const ReadingShare* later = share_of(found, "causal.one_later");
  ASSERT_NE(later, nullptr);
  EXPECT_EQ(later->failing, 2);
  // It concerns no row that fails.
  EXPECT_EQ(share_of(found, "causal.skipped_for_one_query"), nullptr);
}

TEST(RowExplanation, OfTheRightAnswerNamesNothing) {
  const auto found = explain_answers_of(prompt_and_token(), {});
  EXPECT_EQ(found.rows, 10);
  EXPECT_EQ(found.failing, 0);
  EXPECT_TRUE(found.readings.empty());
  EXPECT_FALSE(found.every_row());
}

TEST(RowExplanation, NoReadingExplainsWhatIsNoNumberOrNoReadingsAnswer) {
  const Scenario s = prompt_and_token();
  Oracle right(s, {});
  const auto nan = explain_rows(right, {}, [](const ElementAt&) -> std::optional<double> {
    return std::numeric_limits<double>::quiet_NaN();
  });
  EXPECT_EQ(nan.failing, 10);
  EXPECT_EQ(nan.not_finite, 10);
  EXPECT_TRUE(nan.readings.empty());
  const auto odd =
      explain_rows(right, {}, [](const ElementAt&) -> std::optional<double> { return 1e6; });
  EXPECT_EQ(odd.failing, 10);
  EXPECT_EQ(odd.not_finite, 0);
  EXPECT_TRUE(odd.readings.empty());
}

TEST(RowExplanation, LooksOnlyAtWhatWasAnswered) {
  const Scenario s = prompt_and_token();
  Oracle right(s, {});
  Oracle target(s, {}, find_wrong_model("causal.skipped")->reading);
  const auto all = answers_of(target);
  const auto found = explain_rows(right, {}, [&](const ElementAt& at) -> std::optional<double> {
    return at.step == 1 ? std::nullopt : all(at);
  });
  EXPECT_EQ(found.rows, 8);
  EXPECT_EQ(found.failing, 6);
}

TEST(RowExplanation, StopsAtAPreferredReadingThatExplainsEveryRow) {
  const Scenario s = prompt_and_token();
  Oracle right(s, {});
  Oracle target(s, {}, find_wrong_model("causal.skipped")->reading);
  const auto preferred = [&](const char* name) {
    return explain_rows(right, {}, answers_of(target), {{find_wrong_model(name)}});
  };
  EXPECT_EQ(preferred("causal.skipped").readings.size(), 1u);
  // One that does not explain every row changes nothing.
  EXPECT_GT(preferred("causal.one_later").readings.size(), 1u);
}

TEST(RowExplanation, NamesTheReadingThatAnswered) {
  int named = 0;
  for (const Family& family : families(9, {FillKind::needles, 3}, ElementType::f32)) {
    Oracle right(family.scenario, {});
    for (const WrongModel& model : wrong_models()) {
      if (!model.concerns(family.scenario)) continue;
      if (separation(right, {}, model).ratio <= kSeparationSeen) continue;
      Oracle target(family.scenario, {}, model.reading);
      const auto found = explain_rows(right, {}, answers_of(target));
      const ReadingShare* share = share_of(found, model.name);
      ASSERT_NE(share, nullptr) << family.name << " " << model.name;
      EXPECT_EQ(share->rows, found.rows) << family.name << " " << model.name;
      ++named;
    }
    if (named > 120) break;
  }
  EXPECT_GT(named, 60);
}

}  // namespace
}  // namespace kvcheck::model
