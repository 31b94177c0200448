// Every property is seen red by planted faults, and stays green on the healthy kernel.
#include "properties/catalog.h"

#include <set>

#include <gtest/gtest.h>

#include "kernels/cpu/cpu_naive.h"
#include "kernels/cpu/faults.h"
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
// that refuse, die and change state.
INSTANTIATE_TEST_SUITE_P(
    Faults, EveryProperty,
    testing::Values(Proof{"target.answers", "rollback_always_accepted"},
                    Proof{"cache.resident_range", "min_overflow_eviction"},
                    Proof{"cache.resident_range", "compaction_one_row_short"},
                    Proof{"cache.resident_range", "write_back_oldest"},
                    Proof{"mask.visible_set", "causal_skipped_single_query"},
                    Proof{"mask.visible_set", "window_one_wide"},
                    Proof{"mask.visible_set", "head_modulo"},
                    Proof{"values.within_bound", "scale_ignored"},
                    Proof{"values.within_bound", "narrow_accumulation"},
                    Proof{"cache.split_invariance", "chunk_reversed"},
                    Proof{"cache.split_invariance", "window_ignored_single_token"},
                    Proof{"cache.rollback_exactness", "rollback_ignored"},
                    Proof{"cache.rollback_exactness", "append_row_kept_by_rollback"},
                    Proof{"cache.unspecified_rows", "reads_one_row_past"},
                    Proof{"cache.unspecified_rows", "masked_by_multiply"},
                    Proof{"batch.no_company", "batch_maximum_for_length"},
                    Proof{"batch.no_company", "batch_entry_zero_rows"}),
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

TEST(Catalog, KillsEveryPlantedFault) {
  std::vector<const Property*> all;
  for (const Property& property : catalog()) all.push_back(&property);
  for (const auto& fault : kernels::cpu_naive_faults()) {
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
