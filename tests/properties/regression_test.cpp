// The checked-in scenarios read, are named by their content, say why they are kept, and pass on
// cpu-naive.
#include <gtest/gtest.h>

#include "kernels/cpu/naive/cpu_naive.h"
#include "model/scenario_json.h"
#include "properties/convert.h"
#include "properties/search.h"
#include "shrinkers/corpus.h"

namespace kvcheck::properties {
namespace {

TEST(Regression, ScenariosAreNamedByContentAndSayWhyTheyAreKept) {
  const auto loaded = shrinkers::load_folder(KVCHECK_REGRESSION_FOLDER);
  for (const auto& broken : loaded.broken) ADD_FAILURE() << broken.file << ": " << broken.message;
  EXPECT_GE(loaded.entries.size(), 4u);
  for (const auto& stored : loaded.entries) {
    EXPECT_EQ(stored.file.stem().string(), model::content_hash(stored.entry.scenario))
        << stored.file << " should be named so";
    EXPECT_GE(stored.entry.note.size(), 40u) << stored.file;
  }
}

TEST(Regression, ScenariosPassOnCpuNaive) {
  const auto target = kernels::make_cpu_naive();
  for (const auto& stored : shrinkers::load_folder(KVCHECK_REGRESSION_FOLDER).entries) {
    const auto& scenario = stored.entry.scenario;
    ASSERT_EQ(unsupported_reason(target->capabilities(), scenario), "") << stored.file;
    for (const Property& property : catalog()) {
      if (!property.inapplicable(scenario, target->capabilities()).empty()) continue;
      const auto judgement = judge_fresh(*target, scenario, property);
      EXPECT_TRUE(judgement.verdict == Verdict::passed || judgement.verdict == Verdict::skipped)
          << stored.file << ": " << property.id << ": " << judgement.text;
    }
  }
}

/// The three scenarios of thread 32419 are there to judge splits and rollbacks, not to skip them.
TEST(Regression, ScenariosOfThread32419AreJudgedByTheirProperty) {
  const auto target = kernels::make_cpu_naive();
  int split = 0, rollback = 0;
  for (const auto& stored : shrinkers::load_folder(KVCHECK_REGRESSION_FOLDER).entries) {
    if (stored.entry.note.find("32419") == std::string::npos) continue;
    const auto passes = [&](const char* property) {
      const Property& p = *find_property(property);
      return p.inapplicable(stored.entry.scenario, target->capabilities()).empty() &&
             judge_fresh(*target, stored.entry.scenario, p).verdict == Verdict::passed;
    };
    split += passes("cache.split_invariance");
    rollback += passes("cache.rollback_exactness");
    EXPECT_TRUE(passes("cache.resident_range")) << stored.file;
    EXPECT_TRUE(passes("mask.visible_set")) << stored.file;
  }
  EXPECT_EQ(split, 3);
  EXPECT_EQ(rollback, 1);
}

}  // namespace
}  // namespace kvcheck::properties
