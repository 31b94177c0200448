// Each rule of a GroupQueryAttention call by calls that break it alone; and hostile values.
#include "model/calls/gqa_rules.h"

#include <algorithm>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "tests/model/gqa_call_builder.h"

namespace kvcheck::model {
namespace {

TEST(GqaRules, EachCaseBreaksItsRuleAndNoOther) {
  for (const GqaCase& tested : gqa_cases()) {
    SCOPED_TRACE(tested.name);
    const std::vector<GqaRuleBreak> breaks = check(tested.call);
    EXPECT_EQ(breaks.empty(), !tested.broken);
    for (const GqaRuleBreak& found : breaks) {
      EXPECT_TRUE(tested.broken == found.rule) << to_string(found.rule) << ": " << found.message();
    }
  }
}

TEST(GqaRules, EachHasACase) {
  const std::vector<GqaCase> cases = gqa_cases();
  for (const GqaRule rule : gqa_rules()) {
    EXPECT_TRUE(std::any_of(cases.begin(), cases.end(), [&](const GqaCase& tested) {
      return tested.broken == rule;
    })) << to_string(rule);
  }
}

TEST(GqaRules, ARefusalNamesFieldValueAndRemedy) {
  GqaCall call = gqa_builder::batch_decode();
  call.seqlens_k_values[2] = 9;
  const std::vector<GqaRuleBreak> breaks = check(call);
  ASSERT_EQ(breaks.size(), 1U);
  EXPECT_EQ(breaks[0].message(), "seqlens_k[2] = 9: must be at least 0 and below 4");
}

TEST(GqaRules, AllBreaksOfAGroupAreTold) {
  GqaCall call = gqa_builder::decode();
  call.causal = 3;
  call.qk_output = -1;
  call.value.reset();
  const std::vector<GqaRuleBreak> breaks = check(call);
  ASSERT_EQ(breaks.size(), 3U);
  EXPECT_EQ(breaks[0].rule, GqaRule::causal_value);
  EXPECT_EQ(breaks[1].rule, GqaRule::qk_output_value);
  EXPECT_EQ(breaks[2].rule, GqaRule::key_value_together);
}

/// Any value anywhere: only the sanitizers can object.
TEST(GqaRules, HostileValuesAreRefusedWithoutOverflow) {
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  constexpr auto kMost32 = std::numeric_limits<std::int32_t>::max();
  const std::vector<std::int64_t> sizes{-kMost - 1, -1, 0, 1, 2, 3, 16, 32, kMost32, kMost};
  const std::vector<std::int32_t> lengths{-kMost32 - 1, -1, 0, 3, 4, kMost32};
  std::mt19937_64 random(5);
  const auto pick = [&](const auto& from) { return from[random() % from.size()]; };
  int refused = 0;
  for (const GqaCase& tested : gqa_cases()) {
    for (int i = 0; i < 200; ++i) {
      GqaCall call = tested.call;
      for (auto* tensor :
           {&call.key, &call.value, &call.past_key, &call.past_value, &call.cos_cache,
            &call.sin_cache, &call.position_ids, &call.attention_bias, &call.query_seqlens}) {
        if (!*tensor || random() % 4 != 0 || (*tensor)->shape.empty()) continue;
        (*tensor)->shape[random() % (*tensor)->shape.size()] = pick(sizes);
      }
      if (random() % 2 == 0) call.query.shape[random() % call.query.shape.size()] = pick(sizes);
      if (random() % 2 == 0) call.total_sequence_length_value = pick(lengths);
      if (random() % 2 == 0) call.seqlens_k_values.assign(1, pick(lengths));
      if (random() % 2 == 0) call.query_seqlens_values.assign(1, pick(lengths));
      if (random() % 2 == 0) call.position_ids_values.assign(1, pick(sizes));
      if (random() % 4 == 0) call.local_window_size = pick(sizes);
      refused += check(call).empty() ? 0 : 1;
    }
  }
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace kvcheck::model
