// Every property is seen red by planted faults, and stays green on the healthy kernel.
#include "properties/catalog.h"

#include <set>

#include <gtest/gtest.h>

#include "kernels/cpu/naive/cpu_naive.h"
#include "kernels/cpu/planted/faults.h"
#include "model/scenario_json.h"
#include "tests/properties/first_failure.h"

namespace kvcheck::properties {
namespace {

struct Proof {
  const char* property;
  const char* fault;
};

class EveryProperty : public testing::TestWithParam<Proof> {};

TEST_P(EveryProperty, FailsOnThisPlantedFault) {
  const Property* property = find_property(GetParam().property);
  ASSERT_NE(property, nullptr);
  const auto target = kernels::make_cpu_naive(GetParam().fault);
  ASSERT_NE(target, nullptr);
  const auto failure = first_failure(*target, *property, 1, 3000);
  ASSERT_TRUE(failure.has_value());
  EXPECT_FALSE(failure->judgement.text.empty());
}

// At least two for each property but target.answers, which answers_test.cpp covers with targets
// that refuse, die and change state, and the promises of promises_test.cpp, padding among them.
INSTANTIATE_TEST_SUITE_P(
    Faults, EveryProperty,
    testing::Values(
        Proof{"target.answers", "rollback_always_accepted"},
        Proof{"cache.resident_range", "min_overflow_eviction"},
        Proof{"cache.resident_range", "compaction_one_row_short"},
        Proof{"cache.resident_range", "write_back_oldest"},
        Proof{"mask.visible_set", "causal_skipped_single_query"},
        Proof{"mask.visible_set", "window_one_wide"}, Proof{"mask.visible_set", "head_modulo"},
        Proof{"values.within_bound", "scale_ignored"},
        Proof{"values.within_bound", "narrow_accumulation"},
        Proof{"cache.split_invariance", "chunk_reversed"},
        Proof{"cache.split_invariance", "window_ignored_single_token"},
        Proof{"cache.rollback_exactness", "rollback_ignored"},
        Proof{"cache.rollback_exactness", "append_row_kept_by_rollback"},
        Proof{"cache.unspecified_rows", "reads_one_row_past"},
        Proof{"cache.unspecified_rows", "masked_by_multiply"},
        Proof{"batch.no_company", "batch_maximum_for_length"},
        Proof{"batch.no_company", "batch_entry_zero_rows"},
        Proof{"cache.window_equals_full", "sum_order_varies"},
        Proof{"cache.window_equals_full", "staging_skipped"},
        Proof{"cache.any_capacity", "capacity_for_length"},
        Proof{"cache.any_capacity", "sum_order_varies"}, Proof{"mask.empty_rows", "empty_row_mean"},
        Proof{"mask.empty_rows", "empty_row_nan"}, Proof{"values.finite", "empty_row_nan"},
        Proof{"values.finite", "masked_by_multiply"},
        Proof{"cache.present_is_past_plus_new", "compaction_one_row_short"},
        Proof{"cache.present_is_past_plus_new", "write_back_oldest"},
        Proof{"mask.hidden_keys", "window_one_wide"},
        Proof{"mask.hidden_keys", "nonpad_offset_clamped"},
        Proof{"mask.hidden_keys", "mask_first_row_for_all"},
        Proof{"mask.bias_columns", "mask_first_row_for_all"}, Proof{"heads.map", "head_modulo"},
        Proof{"heads.map", "batch_entry_zero_rows"}, Proof{"cache.drafts", "rollback_one_too_many"},
        Proof{"cache.drafts", "append_row_kept_by_rollback"},
        Proof{"positions.out_of_sight", "window_ignored_single_token"},
        Proof{"positions.out_of_sight", "compaction_skipped"},
        Proof{"batch.permutation", "batch_entry_zero_rows"},
        Proof{"heads.permutation", "head_modulo"}, Proof{"heads.permutation", "key_head_zero"},
        Proof{"cache.staged", "staging_skipped"}, Proof{"cache.staged", "write_back_oldest"},
        Proof{"cache.shared_buffers", "separate_past_not_copied"},
        Proof{"cache.shared_buffers", "compaction_copied_backward"},
        Proof{"target.repeat", "sum_order_varies"}),
    [](const auto& proof) {
      std::string name = std::string(proof.param.property) + "_" + proof.param.fault;
      for (char& c : name) c = c == '.' ? '_' : c;
      return name;
    });

TEST(Catalog, HoldsOnTheHealthyKernel) {
  const auto target = kernels::make_cpu_naive();
  for (const Property& property : catalog()) {
    const auto failure = first_failure(*target, property, 2, 400);
    EXPECT_FALSE(failure.has_value()) << property.id << ": " << failure->judgement.text;
  }
}

/// Judges `text` by every property that applies; the names of those that failed.
std::vector<std::string> failed_properties(kernels::Target& target, const char* text,
                                           std::set<std::string>& applied) {
  std::vector<std::string> failed;
  Case c(target, model::parse_scenario(text));
  for (const Property& property : catalog()) {
    if (!property.inapplicable(c.scenario(), target.capabilities()).empty()) continue;
    applied.insert(property.id);
    if (property.judge(c).verdict == Verdict::failed) failed.push_back(property.id);
  }
  return failed;
}

TEST(Catalog, JudgesTensorsThatAreSpelledOutAndNeitherCutsNorReplacesThem) {
  const char* literal = R"({"schema":1,"operator":"attention","opset":24,"head_size":1,
      "causal":true,"mask":{"kind":"boolean","rank":2},"fill":{"kind":"literal"},"steps":[
      {"append":2,"q":[[[[2]],[[4]]]],"k":[[[[1]],[[3]]]],"v":[[[[1]],[[5]]]],
       "mask":[[true,true],[true,false]]},
      {"append":1,"q":[[[[1]]]],"k":[[[[1]]]],"v":[[[[8]]]],"mask":[[false,true,true]]}]})";
  std::set<std::string> applied;
  EXPECT_EQ(failed_properties(*kernels::make_cpu_naive(), literal, applied),
            std::vector<std::string>{});
  EXPECT_TRUE(applied.count("values.within_bound"));
  for (const char* other : {"mask.visible_set", "cache.split_invariance", "batch.no_company"}) {
    EXPECT_FALSE(applied.count(other)) << other;
  }
  const auto broken = kernels::make_cpu_naive("mask_first_row_for_all");
  ASSERT_NE(broken, nullptr);
  EXPECT_EQ(failed_properties(*broken, literal, applied),
            (std::vector<std::string>{"values.within_bound", "mask.hidden_keys"}));
}

TEST(Catalog, KillsEveryPlantedFault) {
  std::vector<const Property*> all;
  for (const Property& property : catalog()) all.push_back(&property);
  for (const auto& fault : kernels::faults_of("cpu-naive")) {
    const auto target = kernels::make_cpu_naive(fault.name);
    const auto failure = first_failure(*target, all, 3, 3000);
    EXPECT_TRUE(failure.has_value()) << fault.name << ": " << fault.statement;
  }
}

TEST(Catalog, NamesAreDistinctAndStatementsAreSentences) {
  std::set<std::string> ids;
  for (const Property& property : catalog()) {
    EXPECT_TRUE(ids.insert(property.id).second) << property.id;
    EXPECT_NE(property.id.find('.'), std::string::npos) << property.id;
    EXPECT_EQ(property.statement.back(), '.') << property.id;
    EXPECT_EQ(find_property(property.id), &property);
  }
  EXPECT_EQ(find_property("no.such"), nullptr);
}

}  // namespace
}  // namespace kvcheck::properties
