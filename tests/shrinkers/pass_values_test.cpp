// The passes over cache, mask, flags and values keep what a failure needs and simplify the rest.
#include <gtest/gtest.h>

#include "shrinkers/edits.h"
#include "shrinkers/passes.h"
#include "tests/shrinkers/random_scenario.h"
#include "tests/shrinkers/run_pass.h"

namespace kvcheck::shrinkers {
namespace {

using model::Append;
using model::FillKind;
using model::LayoutKind;
using model::MaskKind;
using model::Operator;
using model::Past;
using model::Scenario;
using testing::after;
using testing::always;
using testing::plain_scenario;

TEST(WindowPass, SwitchesTheWindowOff) {
  Scenario s = plain_scenario({Past{{9}}});
  s.cache = {LayoutKind::block, 8, 4};
  EXPECT_EQ(after(shrink_window, s, always).cache, model::CacheSpec{});
}

TEST(WindowPass, KeepsTheWindowButNotTheEviction) {
  Scenario s = plain_scenario({Past{{9}}});
  s.cache = {LayoutKind::block, 8, 4};
  const auto fails = [](const Scenario& t) { return t.cache.window_size.value_or(99) <= 6; };
  const Scenario t = after(shrink_window, s, fails);
  EXPECT_EQ(t.cache.layout, LayoutKind::full);
  EXPECT_EQ(t.cache.window_size, 1);
}

TEST(WindowPass, WidensToTheCapacity) {
  Scenario s = plain_scenario({Past{{9}}});
  s.cache = {LayoutKind::block, 8, 4};
  const auto fails = [](const Scenario& t) {
    return t.cache.layout == LayoutKind::block && *t.cache.window_size >= 3;
  };
  EXPECT_EQ(*after(shrink_window, s, fails).cache.window_size, 8);
}

TEST(CapacityPass, GoesToWhatTheStepsNeed) {
  Scenario s = plain_scenario({Past{{9}}, Append{{2}, {2}, 0}});
  s.cache.capacity = 64;
  EXPECT_EQ(after(shrink_capacity, s, always).cache.capacity, 0);
  const auto fixed = [](const Scenario& t) { return t.cache.capacity > 0; };
  EXPECT_EQ(after(shrink_capacity, s, fixed).cache.capacity, 11);
}

TEST(CapacityPass, GoesToTheWindowOfABlockCache) {
  Scenario s = plain_scenario({Past{{9}}});
  s.cache = {LayoutKind::block, 40, 4};
  EXPECT_EQ(after(shrink_capacity, s, always).cache.capacity, 4);
}

TEST(MaskPass, KeepsAMaskAsSimpleAsTheFailureAllows) {
  Scenario s = plain_scenario({Append{{4}, {4}, 0}});
  s.op = Operator::attention;
  s.opset = 23;
  s.mask = {MaskKind::additive, 4, 60, 99, true};
  EXPECT_EQ(after(shrink_mask, s, always).mask, model::MaskSpec{});
  const auto fails = [](const Scenario& t) {
    return t.mask.kind != MaskKind::none && t.mask.hidden_percent >= 20;
  };
  EXPECT_EQ(after(shrink_mask, s, fails).mask,
            (model::MaskSpec{MaskKind::boolean, 2, 20, 0, false}));
}

TEST(FlagPass, SwitchesOffWhatTheFailureDoesNotNeed) {
  Scenario s = plain_scenario({Append{{4}, {4}, 0}});
  s.share_buffers = false;
  s.scale = 0.5;
  const Scenario t = after(shrink_flags, s, [](const Scenario& u) { return u.scale.has_value(); });
  EXPECT_TRUE(t.share_buffers);
  EXPECT_EQ(t.scale, 0.5);
}

TEST(FlagPass, MakesGqaCausalUnlessTheFailureNeedsItOtherwise) {
  Scenario s = plain_scenario({Append{{4}, {4}, 0}});
  s.causal = false;
  EXPECT_TRUE(after(shrink_flags, s, always).causal);
  const auto fails = [](const Scenario& t) { return !t.causal; };
  EXPECT_EQ(after(shrink_flags, s, fails), s);
}

TEST(FlagPass, LeavesNonpadLengthsAndTheirBufferBehind) {
  Scenario s = plain_scenario({Append{{4}, {4}, 0}});
  s.op = Operator::attention;
  s.opset = 24;
  s.nonpad_kv_seqlen = true;
  s.cache.capacity = 9;
  const Scenario t = after(shrink_flags, s, always);
  EXPECT_FALSE(t.nonpad_kv_seqlen);
  EXPECT_FALSE(t.causal);
  EXPECT_EQ(t.cache.capacity, 0);
}

TEST(ValuePass, ReachesPlainValuesInOneRun) {
  Scenario s = plain_scenario({Append{{4}, {4}, 3}});
  s.fill = {FillKind::random, 77, 0};
  s.poison = model::Poison::nan;
  s.element_type = model::ElementType::bf16;
  std::int64_t evaluations = 0;
  const Scenario t = after(shrink_values, s, always, &evaluations);
  EXPECT_EQ(t, plain_scenario({Append{{4}, {4}, 0}}));
  EXPECT_EQ(evaluations, 1);
}

TEST(ValuePass, DropsTheFirstEntryOfTheData) {
  Scenario s = plain_scenario({Append{{4}, {4}, 0}});
  s.fill = {FillKind::random, 77, 0, 3};
  const auto random = [](const Scenario& t) { return t.fill.kind == FillKind::random; };
  EXPECT_EQ(after(shrink_values, s, random).fill, (model::FillSpec{FillKind::random, 0, 0, 0}));
  const auto needed = [](const Scenario& t) { return t.fill.first_entry == 3; };
  EXPECT_EQ(after(shrink_values, s, needed).fill.first_entry, 3);
}

TEST(ValuePass, KeepsTheOneValueThatMatters) {
  Scenario s = plain_scenario({Append{{4}, {4}, 0}});
  s.fill = {FillKind::random, 77, 0};
  s.poison = model::Poison::nan;
  s.element_type = model::ElementType::bf16;
  const auto fails = [](const Scenario& t) {
    return t.fill.kind == FillKind::random && t.poison >= model::Poison::huge;
  };
  const Scenario t = after(shrink_values, s, fails);
  EXPECT_EQ(t.fill, (model::FillSpec{FillKind::random, 0, 0}));
  EXPECT_EQ(t.poison, model::Poison::huge);
  EXPECT_EQ(t.element_type, model::ElementType::f32);
}

}  // namespace
}  // namespace kvcheck::shrinkers
