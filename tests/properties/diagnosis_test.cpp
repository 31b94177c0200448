// Facts about the diagnosis: planted faults are named, healthy answers are not, and what no reading
// explains is said to be so.
#include "properties/diagnosis.h"

#include <string>

#include <gtest/gtest.h>

#include "kernels/cpu/naive/cpu_naive.h"
#include "model/scenario_json.h"

namespace kvcheck::properties {
namespace {

/// A window over a full cache, a chunk, and several heads.
model::Scenario windowed() {
  return model::parse_scenario(R"({"schema":1,"operator":"gqa","query_heads":4,"kv_heads":2,
      "head_size":8,"cache":{"window_size":4},
      "fill":{"kind":"needles","seed":5},"steps":[{"append":7},{"append":2},{"append":1}]})");
}

/// Thread 34226 in small.
model::Scenario one_query_behind_a_past() {
  return model::parse_scenario(R"({"schema":1,"operator":"attention","opset":23,"query_heads":2,
      "kv_heads":1,"head_size":8,"fill":{"kind":"random","seed":5},
      "steps":[{"past":3},{"append":2,"queries":1},{"append":3,"queries":2}]})");
}

/// Evictions of four rows at T = 8 and T = 12.
model::Scenario evicting() {
  return model::parse_scenario(R"({"schema":1,"operator":"gqa","query_heads":2,"kv_heads":1,
      "head_size":8,"cache":{"layout":"block","capacity":7,"window_size":4},
      "fill":{"kind":"needles","seed":5},
      "steps":[{"append":7},{"append":2},{"append":1},{"append":3},{"append":1}]})");
}

/// A mask of which some rows hide everything.
model::Scenario empty_rows() {
  return model::parse_scenario(R"({"schema":1,"operator":"attention","opset":23,"head_size":8,
      "mask":{"kind":"boolean","rank":2,"empty_rows":true,"seed":3},
      "fill":{"kind":"random","seed":5},"steps":[{"append":6}]})");
}

std::vector<std::string> words_of(const char* fault, const model::Scenario& scenario) {
  const auto target = kernels::make_cpu_naive(fault);
  EXPECT_NE(target, nullptr) << fault;
  return diagnosis_words(*target, scenario);
}

std::string diagnosis(const char* fault, const model::Scenario& scenario) {
  const auto words = words_of(fault, scenario);
  return words.empty() ? "" : words.front();
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Diagnosis, NamesTheReadingOfAPlantedFault) {
  EXPECT_TRUE(contains(diagnosis("window_one_wide", windowed()), "window.one_more"));
  EXPECT_TRUE(contains(diagnosis("head_modulo", windowed()), "heads.modulo"));
  const std::string skipped = diagnosis("causal_skipped_single_query", one_query_behind_a_past());
  // 2 of the 6 rows fail: the one query of the first append, in two heads.
  EXPECT_TRUE(contains(skipped,
                       "explained on every row if it leaves the causal rule out where a "
                       "step asks one query (causal.skipped_for_one_query"))
      << skipped;
  EXPECT_TRUE(contains(skipped, "the contract explains 67 % of the rows")) << skipped;
  EXPECT_FALSE(contains(skipped, "causal.skipped,")) << skipped;
}

TEST(Diagnosis, IsSilentWhereTheOutputsAreRight) {
  const auto healthy = kernels::make_cpu_naive();
  EXPECT_TRUE(diagnosis_words(*healthy, windowed()).empty());
}

TEST(Diagnosis, SaysThatNoReadingExplainsWhatNoneDoes) {
  const std::string odd = diagnosis("compaction_one_row_short", evicting());
  EXPECT_TRUE(contains(odd,
                       "no known wrong reading explains any of the 6 failing rows; "
                       "the contract explains 79 % of the rows"))
      << odd;
}

TEST(Diagnosis, MeasuresTheMaskWhereOutputsAreNoNumbers) {
  const auto words = words_of("empty_row_nan", empty_rows());
  ASSERT_EQ(words.size(), 2u);
  EXPECT_TRUE(contains(words[0], "rows are not finite")) << words[0];
  EXPECT_TRUE(contains(words[1], "measured with zero logits, is the contract's on the "))
      << words[1];
}

TEST(Diagnosis, OfOneExecutionRunsNothingAgain) {
  const auto target = kernels::make_cpu_naive("head_modulo");
  Case c(*target, windowed());
  const auto found = explain_rows(c, c.execution());
  // 10 queries in 4 heads; heads 1 and 2 read the other KV head.
  EXPECT_EQ(found.rows, 40);
  EXPECT_EQ(found.failing, 20);
  EXPECT_EQ(explanation_words(found).find("explained on every row if it maps query heads"), 0u);
  EXPECT_EQ(explanation_words({}), "");
}

}  // namespace
}  // namespace kvcheck::properties
