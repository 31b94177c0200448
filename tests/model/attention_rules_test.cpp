// Each rule of an Attention call by calls that break it alone; and hostile values.
#include "model/calls/attention_rules.h"

#include <algorithm>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "tests/model/call_cases.h"

namespace kvcheck::model {
namespace {

TEST(AttentionRules, EachCaseBreaksItsRuleAndNoOther) {
  for (const AttentionCase& tested : attention_cases()) {
    SCOPED_TRACE(tested.name);
    const std::vector<AttentionRuleBreak> breaks = check(tested.call, strictness_of(tested));
    EXPECT_EQ(breaks.empty(), !tested.broken);
    for (const AttentionRuleBreak& found : breaks) {
      EXPECT_TRUE(tested.broken == found.rule) << to_string(found.rule) << ": " << found.message();
    }
  }
}

TEST(AttentionRules, TheOperatorKnowsNoneOfThoseOfTheKernel) {
  for (const AttentionCase& tested : attention_cases()) {
    SCOPED_TRACE(tested.name);
    const bool by_operator = check(tested.call, Strictness::operator_contract).empty();
    const bool by_kernel = check(tested.call, Strictness::onnxruntime_cpu).empty();
    const bool kernel_alone = tested.broken && *tested.broken >= AttentionRule::cpu_type;
    EXPECT_EQ(by_operator, !tested.broken || kernel_alone);
    EXPECT_EQ(by_kernel, !tested.broken);
  }
}

TEST(AttentionRules, EachHasACase) {
  const std::vector<AttentionCase> cases = attention_cases();
  for (const AttentionRule rule : attention_rules()) {
    EXPECT_TRUE(std::any_of(cases.begin(), cases.end(), [&](const AttentionCase& tested) {
      return tested.broken == rule;
    })) << to_string(rule);
  }
}

/// Any value anywhere: only the sanitizers can object.
TEST(AttentionRules, HostileValuesAreRefusedWithoutOverflow) {
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  const std::vector<std::int64_t> sizes{-kMost - 1, -1, 0, 1, 2, 3, 5, 8, kMost - 1, kMost};
  std::mt19937_64 random(6);
  const auto pick = [&] { return sizes[random() % sizes.size()]; };
  int refused = 0;
  for (const AttentionCase& tested : attention_cases()) {
    for (int i = 0; i < 200; ++i) {
      AttentionCall call = tested.call;
      for (auto* tensor : {&call.q, &call.k, &call.v}) {
        if (random() % 3 == 0) tensor->shape[random() % tensor->shape.size()] = pick();
      }
      for (auto* tensor : {&call.past_key, &call.past_value, &call.attn_mask}) {
        if (!*tensor || random() % 3 != 0 || (*tensor)->shape.empty()) continue;
        (*tensor)->shape[random() % (*tensor)->shape.size()] = pick();
      }
      if (random() % 4 == 0) call.q_num_heads = pick();
      if (random() % 4 == 0) call.kv_num_heads = pick();
      if (random() % 4 == 0) call.nonpad_kv_seqlen_values.assign(2, pick());
      refused += check(call, Strictness::onnxruntime_cpu).empty() ? 0 : 1;
    }
  }
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace kvcheck::model
