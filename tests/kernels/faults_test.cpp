// Planted faults of cpu-naive: each has a case in which it changes the answer as it says.
#include "kernels/cpu/planted/faults.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "kernels/cpu/planted/planted_target.h"
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
  for (const FaultInfo& fault : faults_of("cpu-naive")) listed.insert(fault.name);
  EXPECT_EQ(with_case, listed);
}

TEST(Faults, AreDescribedAndFoundByTargetAndName) {
  std::set<std::pair<std::string, std::string>> names;
  for (const FaultInfo& fault : planted_faults()) {
    EXPECT_TRUE(names.emplace(fault.target, fault.name).second) << fault.name;
    EXPECT_TRUE(fault_of(fault.target, fault.name).has_value()) << fault.name;
    EXPECT_FALSE(fault.kind.empty()) << fault.name;
    EXPECT_EQ(fault.statement.find('.'), fault.statement.size() - 1) << fault.name;
    for (const std::string& report : fault.reports) {
      EXPECT_EQ(report.size(), 3) << fault.name;
      EXPECT_EQ(report[0], 'C') << fault.name;
    }
  }
}

TEST(Faults, AreNamedInTheTargetThatHasThem) {
  for (const FaultInfo& fault : planted_faults()) {
    const std::string name = fault.target + "+" + fault.name;
    EXPECT_EQ(make_planted(fault.target, fault.name)->capabilities().name, name);
    const auto one_row = make_planted(fault.target, fault.name, true);
    ASSERT_EQ(one_row != nullptr, fault.one_row) << name;
    if (one_row != nullptr) EXPECT_EQ(one_row->capabilities().name, name + "@row");
  }
}

TEST(Faults, UnknownNamesGiveNoTarget) {
  EXPECT_EQ(make_cpu_naive("window_two_wide"), nullptr);
  EXPECT_EQ(make_cpu_naive(""), nullptr);
  EXPECT_EQ(make_cpu_naive("none"), nullptr);
}

/// Caches of every kind, two entries and four query heads over two KV heads.
std::vector<SessionConfig> small_configs() {
  std::vector<SessionConfig> configs{full_cache(),      full_cache(3), block_cache(5, 3),
                                     block_cache(4, 4), attention(),   nonpad(6),
                                     nonpad(6, false)};
  for (SessionConfig& config : configs) {
    config.batch = config.kv_heads = 2;
    config.query_heads = 4;
    if (config.nonpad_kv_seqlen) config.mask = "boolean";
  }
  configs.push_back(configs[0]);
  configs.push_back(configs[2]);
  configs[7].share_buffers = configs[8].share_buffers = false;
  return configs;
}

/// Twenty random steps and rollbacks. A fault may make the session refuse some of them.
void run_at_random(const SessionConfig& config, std::string_view fault, std::mt19937& random) {
  Sequence sequence(config, fault);
  const auto below = [&](std::int64_t limit) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(limit));
  };
  const bool gqa = config.op == "gqa";
  const bool one_length = !gqa && !config.nonpad_kv_seqlen;
  for (int i = 0; i < 20; ++i) {
    if (below(4) == 0) {
      const Counts tokens{below(4), below(4)};
      (void)sequence.session().rollback(one_length ? Counts{tokens[0], tokens[0]} : tokens);
      continue;
    }
    Counts tokens{below(6), below(6)};
    if (one_length) tokens[1] = tokens[0];
    const Counts queries = gqa ? tokens : Counts{below(4), below(4)};
    StepRequest request = sequence.request(tokens, queries);
    const std::int64_t asked = std::max(queries[0], queries[1]);
    if (config.mask == "boolean" && asked > 0) {
      request.mask = Tensor::zeros(ElementType::boolean, {4, asked, config.capacity});
      for (std::byte& keep : request.mask->bytes) keep = static_cast<std::byte>(below(2));
    }
    const auto answer = sequence.session().step(request);
    if (const auto* result = std::get_if<StepResult>(&answer)) {
      EXPECT_EQ(result->output->shape, (std::vector<std::int64_t>{2, asked, 4, 1})) << fault;
    }
  }
}

// What leaves a buffer shows under the sanitizers.
TEST(Faults, StayInsideTheirBuffers) {
  std::mt19937 random(20260924);
  for (const FaultInfo& fault : faults_of("cpu-naive")) {
    for (const SessionConfig& config : small_configs()) {
      for (int i = 0; i < 8; ++i) run_at_random(config, fault.name, random);
    }
  }
}

}  // namespace
}  // namespace kvcheck::kernels
