// Launches that show digits of positions: what they confirm, contradict and cannot see.
#include "properties/digit_check.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "kernels/cpu/naive/cpu_naive.h"
#include "model/scenario_json.h"
#include "properties/case.h"
#include "properties/catalog.h"
#include "tests/properties/counting_target.h"

namespace kvcheck::properties {
namespace {

/// Thread 34226: a past of 2, one query, two new keys.
model::Scenario causal_past() {
  return model::parse_scenario(R"({"schema":1,"operator":"attention","opset":23,"head_size":4,
      "steps":[{"past":2},{"append":2,"queries":1}]})");
}

TEST(DigitCheck, AgreesOnAHealthyKernelAndNamesTheQueryOnABrokenOne) {
  const auto healthy = kernels::make_cpu_naive();
  const auto good = check_digits(*healthy, causal_past());
  EXPECT_FALSE(good.mismatch.has_value());
  EXPECT_FALSE(good.blind);
  EXPECT_EQ(good.queries, 1);
  const auto broken = kernels::make_cpu_naive("causal_skipped_single_query");
  const auto bad = check_digits(*broken, causal_past());
  ASSERT_TRUE(bad.mismatch.has_value());
  EXPECT_EQ(bad.mismatch->step, 1u);
}

TEST(DigitCheck, ShowsAllDigitsInOneLaunchWhereTheyHaveLanes) {
  const auto launches = [](int lanes, int tokens) {
    const auto scenario = model::parse_scenario(fmt::format(
        R"({{"schema":1,"operator":"attention","opset":23,"head_size":{},"steps":[{{"append":{}}}]}})",
        lanes, tokens));
    CountingTarget target(kernels::make_cpu_naive());
    EXPECT_FALSE(check_digits(target, scenario).mismatch);
    return target.opened;
  };
  EXPECT_EQ(launches(8, 8), 1);   // One digit of base 8.
  EXPECT_EQ(launches(8, 16), 1);  // Two of base 4.
  EXPECT_EQ(launches(8, 17), 2);
  EXPECT_EQ(launches(9, 27), 1);  // Three of base 3.
  EXPECT_EQ(launches(3, 9), 2);
}

TEST(DigitCheck, SeesOneKeyTooManyInEitherDigitOfOneLaunch) {
  // A window of 3 that is 4 wide: at each length the key too many differs from its neighbours in
  // the low digit, at multiples of 4 in the high one as well.
  const auto target = kernels::make_cpu_naive("window_one_wide");
  for (const int tokens : {9, 10, 11, 12, 13, 14, 15, 16}) {
    const auto scenario = model::parse_scenario(fmt::format(
        R"({{"schema":1,"operator":"gqa","head_size":8,"query_heads":2,
            "cache":{{"capacity":20,"window_size":3}},"steps":[{{"past":{}}},{{"append":1}}]}})",
        tokens - 1));
    const auto check = check_digits(*target, scenario);
    ASSERT_TRUE(check.mismatch.has_value()) << tokens;
    EXPECT_EQ(check.mismatch->step, 1u);
  }
}

TEST(DigitCheck, IsBlindWhereAKeyHidesInTheRounding) {
  const auto target = kernels::make_cpu_naive();
  const auto scenario = model::parse_scenario(R"({"schema":1,"operator":"gqa","head_size":8,
      "element_type":"bf16","steps":[{"past":4999},{"append":1}]})");
  EXPECT_TRUE(check_digits(*target, scenario).blind);
}

TEST(DigitCheck, SeesARowThatIsNoneOfTheCache) {
  // One key fills its lane; any other key would light another one.
  const auto scenario = model::parse_scenario(
      R"({"schema":1,"operator":"gqa","head_size":8,"steps":[{"append":1}]})");
  EXPECT_FALSE(check_digits(*kernels::make_cpu_naive(), scenario).blind);
}

/// Two KV heads, each with two keys in two lanes: rotated or not, all lanes look alike.
model::Scenario two_heads() {
  return model::parse_scenario(R"({"schema":1,"operator":"attention","opset":23,"head_size":2,
      "causal":false,"query_heads":4,"kv_heads":2,"steps":[{"append":2}]})");
}

TEST(DigitCheck, TellsHeadsApartWhoseLanesLookAlike) {
  const auto scenario = two_heads();
  EXPECT_TRUE(check_digits(*kernels::make_cpu_naive(), scenario).tells_heads);
  const auto wrong = kernels::make_cpu_naive("head_modulo");
  EXPECT_TRUE(check_digits(*wrong, scenario).mismatch.has_value());
}

TEST(DigitCheck, TellsNoHeadsWhereValuesRepeat) {
  auto scenario = two_heads();
  scenario.batch = 4;
  scenario = model::normalise(scenario);
  const auto check = check_digits(*kernels::make_cpu_naive(), scenario);
  EXPECT_TRUE(check.clear());
  EXPECT_FALSE(check.tells_heads);
}

/// Sessions that a property opens on a bundled case whose digits were shown before.
int opened_by(const char* property, const model::Scenario& scenario) {
  CountingTarget target(kernels::make_cpu_naive());
  Case c(target, scenario, Case::Mode::bundled);
  EXPECT_TRUE(c.digits().check().clear());
  const int before = target.opened;
  EXPECT_TRUE(find_property(property)->inapplicable(scenario, target.capabilities()).empty());
  EXPECT_EQ(judge(c, *find_property(property)).verdict, Verdict::passed);
  return target.opened - before;
}

TEST(DigitCheck, ShowsHeadsAndSinksWithoutARunOfTheirOwn) {
  EXPECT_EQ(opened_by("heads.map", two_heads()), 0);
  auto scenario = model::parse_scenario(
      R"({"schema":1,"operator":"gqa","head_size":8,"head_sink":true,"steps":[{"append":3}]})");
  EXPECT_EQ(opened_by("sinks.mass", scenario), 0);
  // A head sink of 0 in its place.
  scenario.head_sink = false;
  scenario.smooth_softmax = true;
  EXPECT_EQ(opened_by("sinks.mass", scenario), 1);
}

TEST(DigitCheck, ShowsColumnsOfAMaskInOneRun) {
  auto scenario = two_heads();
  scenario.mask.kind = model::MaskKind::boolean;
  scenario.mask.rank = 4;
  EXPECT_EQ(opened_by("mask.bias_columns", scenario), 1);
}

}  // namespace
}  // namespace kvcheck::properties
