// Planted faults: each has a case in which it changes the answer as it says.
#include "kernels/cpu/planted/faults.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ostream>
#include <random>
#include <set>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

#include "kernels/cpu/planted/planted_target.h"
#include "tests/kernels/fault_cases.h"

namespace kvcheck::kernels {
namespace {

/// A case in one of the targets that have its fault.
struct Planted {
  FaultCase fault;
  std::string target;
};

void PrintTo(const Planted& planted, std::ostream* out) {
  *out << planted.target << "+" << planted.fault.fault;
}

std::string kind_of(std::string_view target) {
  return target.ends_with("-q8") ? "int8" : target.ends_with("-q4") ? "int4" : "none";
}

std::vector<Planted> all_cases() {
  std::vector<Planted> cases;
  for (const auto& part : {attention_fault_cases(), cache_fault_cases(), input_fault_cases(),
                           row_fault_cases(), refusal_fault_cases(), flash_fault_cases()}) {
    for (const FaultCase& one : part) {
      for (const FaultInfo& info : planted_faults()) {
        if (info.name != one.fault) continue;
        if (one.target != nullptr && info.target != one.target) continue;
        if (kind_of(info.target) == one.config.quantisation.kind) {
          cases.push_back({one, info.target});
        }
      }
    }
  }
  return cases;
}

/// Equal, with NaN equal to itself; what kernels other than cpu-naive compute, nearly.
bool same(const Numbers& a, const Numbers& b, bool nearly) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](double x, double y) {
    const bool near = nearly && std::abs(x - y) <= 2e-6 * std::max(std::abs(x), std::abs(y));
    return x == y || near || (std::isnan(x) && std::isnan(y));
  });
}

/// -1 where the session is refused.
Numbers answer_of(const Planted& planted, std::string_view fault) {
  try {
    Sequence sequence(planted.fault.config, fault, planted.target);
    return planted.fault.run(sequence);
  } catch (const std::runtime_error& refused) {
    std::fprintf(stderr, "%s\n", refused.what());
    return {-1};
  }
}

class FaultCases : public testing::TestWithParam<Planted> {
 protected:
  void SetUp() override {
    const std::string& isa = GetParam().fault.config.isa;
    const auto target = make_planted(GetParam().target, GetParam().fault.fault);
    const auto& here = target->capabilities().isas;
    if (!isa.empty() && std::find(here.begin(), here.end(), isa) == here.end()) {
      GTEST_SKIP() << isa << " cannot run here";
    }
  }
  static bool nearly(const Numbers& numbers) {
    const FaultCase& one = GetParam().fault;
    const bool whole = std::all_of(numbers.begin(), numbers.end(),
                                   [](double x) { return x * 8 == std::floor(x * 8); });
    return GetParam().target != "cpu-naive" || one.wrong.empty() || !whole;
  }
};

TEST_P(FaultCases, HealthyKernelAnswersAsWorkedOutByHand) {
  const FaultCase& one = GetParam().fault;
  const Numbers answer = answer_of(GetParam(), {});
  EXPECT_TRUE(same(answer, one.right, nearly(one.right))) << testing::PrintToString(answer);
}

TEST_P(FaultCases, FaultChangesTheAnswerAsItsStatementSays) {
  const FaultCase& one = GetParam().fault;
  const Numbers answer = answer_of(GetParam(), one.fault);
  if (one.wrong.empty()) {
    EXPECT_FALSE(same(answer, answer_of(GetParam(), {}), false)) << testing::PrintToString(answer);
    return;
  }
  ASSERT_FALSE(same(one.right, one.wrong, nearly(one.right)));
  EXPECT_TRUE(same(answer, one.wrong, nearly(one.wrong))) << testing::PrintToString(answer);
}

INSTANTIATE_TEST_SUITE_P(All, FaultCases, testing::ValuesIn(all_cases()), [](const auto& one) {
  std::string name = one.param.target + "_" + one.param.fault.fault;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(Faults, EveryOneHasACase) {
  std::multiset<std::string> with_case, listed;
  for (const Planted& one : all_cases()) with_case.insert(one.target + "+" + one.fault.fault);
  for (const FaultInfo& fault : planted_faults()) listed.insert(fault.target + "+" + fault.name);
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
    if (!fault.one_row) continue;
    EXPECT_EQ(one_row->capabilities().name, name + "@row");
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
void run_at_random(const SessionConfig& config, const FaultInfo& planted, std::mt19937& random) {
  const std::string& fault = planted.name;
  Sequence sequence(config, fault, planted.target);
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
  for (const FaultInfo& fault : planted_faults()) {
    if (kind_of(fault.target) != "none") continue;
    for (const SessionConfig& config : small_configs()) {
      if (fault.name == "capacity_above_window_refused" && config.layout == "block") continue;
      for (int i = 0; i < 4; ++i) run_at_random(config, fault, random);
    }
  }
}

}  // namespace
}  // namespace kvcheck::kernels
