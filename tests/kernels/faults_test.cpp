// Planted faults of cpu-naive: each has a case in which it changes the answer as it says.
#include "kernels/cpu/faults.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "tests/kernels/fault_cases.h"

namespace kvcheck::kernels {
namespace {

std::vector<FaultCase> all_cases() {
  std::vector<FaultCase> cases = attention_fault_cases();
  for (FaultCase& one : cache_fault_cases()) cases.push_back(std::move(one));
  return cases;
}

/// Equal, with NaN equal to itself.
bool same(const Numbers& a, const Numbers& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); });
}

class FaultCases : public testing::TestWithParam<FaultCase> {};

TEST_P(FaultCases, HealthyKernelAnswersAsWorkedOutByHand) {
  Sequence sequence(GetParam().config);
  const Numbers answer = GetParam().run(sequence);
  EXPECT_TRUE(same(answer, GetParam().right)) << testing::PrintToString(answer);
}

TEST_P(FaultCases, FaultChangesTheAnswerAsItsStatementSays) {
  ASSERT_FALSE(same(GetParam().right, GetParam().wrong));
  Sequence sequence(GetParam().config, GetParam().fault);
  const Numbers answer = GetParam().run(sequence);
  EXPECT_TRUE(same(answer, GetParam().wrong)) << testing::PrintToString(answer);
}

INSTANTIATE_TEST_SUITE_P(All, FaultCases, testing::ValuesIn(all_cases()),
                         [](const auto& one) { return std::string(one.param.fault); });

TEST(Faults, EveryOneHasACase) {
  std::multiset<std::string> with_case, listed;
  for (const FaultCase& one : all_cases()) with_case.insert(one.fault);
  for (const FaultInfo& fault : cpu_naive_faults()) listed.insert(fault.name);
  EXPECT_EQ(with_case, listed);
}

TEST(Faults, AreListedInTheOrderOfTheEnumerationUnderTheirOwnNames) {
  int expected = static_cast<int>(Fault::none);
  for (const FaultInfo& fault : cpu_naive_faults()) {
    EXPECT_EQ(static_cast<int>(cpu_naive_fault(fault.name).value()), ++expected) << fault.name;
    EXPECT_EQ(fault.target, "cpu-naive");
    EXPECT_FALSE(fault.kind.empty()) << fault.name;
    EXPECT_EQ(fault.statement.find('.'), fault.statement.size() - 1) << fault.name;
  }
  EXPECT_EQ(expected, static_cast<int>(Fault::chunk_first_position));
}

TEST(Faults, AreNamedInTheTargetThatHasThem) {
  for (const FaultInfo& fault : cpu_naive_faults()) {
    EXPECT_EQ(make_cpu_naive(fault.name)->capabilities().name, "cpu-naive+" + fault.name);
  }
}

TEST(Faults, UnknownNamesGiveNoTarget) {
  EXPECT_EQ(make_cpu_naive("window_two_wide"), nullptr);
  EXPECT_EQ(make_cpu_naive(""), nullptr);
  EXPECT_EQ(make_cpu_naive("none"), nullptr);
}

}  // namespace
}  // namespace kvcheck::kernels
