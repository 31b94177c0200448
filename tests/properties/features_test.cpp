// The whole catalog on a target of every feature: green when it is right, red by each mistake.
#include <gtest/gtest.h>

#include "model/scenario_json.h"
#include "properties/finding.h"
#include "tests/properties/first_failure.h"
#include "tests/properties/reference_target.h"

namespace kvcheck::properties {
namespace {

TEST(Features, EveryPropertyHoldsOnATargetOfAllOfThem) {
  const auto target = make_reference_target();
  for (const Property& property : catalog()) {
    const auto failure = first_failure(*target, property, 3, 400);
    EXPECT_FALSE(failure.has_value()) << property.id << ": " << failure->judgement.text << "\n"
                                      << model::canonical_text(failure->scenario);
  }
}

struct Proof {
  const char* property;
  const char* mistake;
};

class Mistakes : public testing::TestWithParam<Proof> {};

TEST_P(Mistakes, AreSeen) {
  const auto target = make_reference_target(GetParam().mistake);
  const auto failure = first_failure(*target, *find_property(GetParam().property), 3, 1500);
  ASSERT_TRUE(failure.has_value());
  EXPECT_FALSE(failure->judgement.text.empty());
}

INSTANTIATE_TEST_SUITE_P(All, Mistakes,
                         testing::Values(Proof{"cache.resident_range", "rotary_by_row"},
                                         Proof{"cache.split_invariance", "rotary_by_row"},
                                         Proof{"cache.resident_range", "norm_without_weight"},
                                         Proof{"values.within_bound", "norm_without_weight"},
                                         Proof{"values.within_bound", "sink_in_every_key"},
                                         Proof{"cache.resident_range", "scale_of_first_lane"},
                                         Proof{"values.within_bound", "scale_of_first_lane"},
                                         Proof{"cache.resident_range", "codes_truncated"},
                                         Proof{"values.qk_output", "qk_before_softcap"},
                                         Proof{"mask.visible_set", "right_window_off"},
                                         Proof{"mask.bias_columns", "bias_from_oldest"},
                                         Proof{"softcap.order", "cap_after_bias"},
                                         Proof{"softcap.order", "cap_before_scale"},
                                         Proof{"sinks.mass", "sink_ignored"},
                                         Proof{"sinks.mass", "sink_with_value"},
                                         Proof{"cache.quantised_codes", "codes_truncated"},
                                         Proof{"cache.quantised_codes", "scale_of_first_lane"},
                                         Proof{"values.power_of_two", "values_clamped"}),
                         [](const auto& proof) {
                           std::string name =
                               std::string(proof.param.property) + "_" + proof.param.mistake;
                           for (char& c : name) c = c == '.' ? '_' : c;
                           return name;
                         });

/// What is learned of the first failure of a mistake.
FindingRecord investigated(const char* property_id, const char* mistake) {
  const auto target = make_reference_target(mistake);
  const Property& property = *find_property(property_id);
  const auto failure = first_failure(*target, property, 3, 1500);
  EXPECT_TRUE(failure.has_value());
  return investigate(*target, property, failure->judgement, failure->scenario, {});
}

TEST(Features, AFindingOfCodesKeepsTheQuantisedCacheAndShowsTheRow) {
  const auto finding = investigated("cache.resident_range", "codes_truncated");
  const auto& s = finding.minimal;
  EXPECT_NE(s.cache.quantisation.kind, model::QuantisationKind::none);
  EXPECT_FALSE(s.rotary || s.qk_norm || s.head_sink || s.smooth_softmax || s.softcap != 0);
  EXPECT_TRUE(finding.deterministic);
  const auto step = static_cast<std::size_t>(finding.evidence.failing_step);
  ASSERT_LT(step, finding.evidence.steps.size());
  EXPECT_FALSE(finding.evidence.steps[step].rows.empty());
}

TEST(Features, AFindingOfAnIntermediateKeepsWhatMakesIt) {
  const auto finding = investigated("values.qk_output", "qk_before_softcap");
  EXPECT_EQ(finding.minimal.qk_output, model::QkOutput::biased);
  EXPECT_NE(finding.summary.find("qk_output (biased) of key"), std::string::npos);
}

}  // namespace
}  // namespace kvcheck::properties
