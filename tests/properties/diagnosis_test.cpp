// Facts about the diagnosis: planted faults are named, healthy and unexplained answers are not.
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

std::string diagnosis(const char* fault, const model::Scenario& scenario) {
  const auto target = kernels::make_cpu_naive(fault);
  EXPECT_NE(target, nullptr) << fault;
  const auto words = diagnosis_words(*target, scenario);
  return words.empty() ? "" : words.front();
}

TEST(Diagnosis, NamesTheReadingOfAPlantedFault) {
  EXPECT_NE(diagnosis("window_one_wide", windowed()).find("window.one_more"), std::string::npos);
  EXPECT_NE(diagnosis("head_modulo", windowed()).find("heads.modulo"), std::string::npos);
  const std::string skipped = diagnosis("causal_skipped_single_query", one_query_behind_a_past());
  EXPECT_NE(skipped.find("causal.skipped_for_one_query"), std::string::npos) << skipped;
  EXPECT_NE(skipped.find("leaves the causal rule out where a step asks one query"),
            std::string::npos);
  EXPECT_EQ(skipped.find("causal.skipped)"), std::string::npos) << skipped;
}

TEST(Diagnosis, IsSilentWhereTheOutputsAreRightOrUnexplained) {
  const auto healthy = kernels::make_cpu_naive();
  EXPECT_TRUE(diagnosis_words(*healthy, windowed()).empty());
  EXPECT_EQ(diagnosis("narrow_accumulation", windowed()), "");
}

}  // namespace
}  // namespace kvcheck::properties
