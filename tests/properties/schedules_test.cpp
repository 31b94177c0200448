// target.schedules: a device whose kernels are right in the order of the scenario alone is found by
// the other orders, with the place of the defect; healthy kernels are green in all of them.
#include <gtest/gtest.h>

#include "kernels/cuda/cuda_simt.h"
#include "model/scenario_json.h"
#include "properties/catalog.h"
#include "properties/finding.h"
#include "tests/properties/promise_breaker.h"

namespace kvcheck::properties {
namespace {

/// cuda-simt with a fault that is there under one order alone.
class FaultyUnderOneOrder final : public kernels::Target {
 public:
  FaultyUnderOneOrder(std::string_view fault, std::string order)
      : order_(std::move(order)),
        healthy_(kernels::make_cuda_simt()),
        faulty_(kernels::make_cuda_simt_planted("cuda-simt", fault)) {}

  const kernels::Capabilities& capabilities() const override { return healthy_->capabilities(); }

  kernels::Answer<std::unique_ptr<kernels::Session>> open(
      const kernels::SessionConfig& config) override {
    const bool faulty = config.launch && config.launch->order == order_;
    return (faulty ? faulty_ : healthy_)->open(config);
  }

 private:
  std::string order_;
  std::unique_ptr<kernels::Target> healthy_, faulty_;
};

const Property& schedules() { return *find_property("target.schedules"); }

Judgement judged(kernels::Target& target, const char* scenario) {
  return judge_fresh(target, model::parse_scenario(scenario), schedules());
}

/// 40 keys: three tiles of decode, for four warps.
constexpr const char* kDecode = R"({"schema":1,"operator":"gqa","element_type":"f16",
    "head_size":8,"query_heads":2,"launch":{"kernel":"decode","threads":128},
    "steps":[{"append":40,"queries":0},{"append":1}]})";

TEST(Schedules, OfHealthyKernelsAreGreen) {
  const auto target = kernels::make_cuda_simt();
  for (const char* kernel : {"unfused", "decode", "decode_matrix", "prefill"}) {
    auto scenario = model::parse_scenario(kDecode);
    for (const auto named : {model::LaunchKernel::unfused, model::LaunchKernel::decode,
                             model::LaunchKernel::decode_matrix, model::LaunchKernel::prefill}) {
      if (to_string(named) == kernel) scenario.launch->kernel = named;
    }
    const Judgement judgement = judge_fresh(*target, scenario, schedules());
    EXPECT_EQ(judgement.verdict, Verdict::passed) << kernel << ": " << judgement.text;
  }
}

TEST(Schedules, AMissingBarrierUnderAnyOrderIsADefectWithItsLine) {
  for (const char* order : {"lockstep", "random", "reverse", "priority", "starve"}) {
    FaultyUnderOneOrder target("decode_no_warp_merge_sync", order);
    auto scenario = model::parse_scenario(kDecode);
    // The scenario's own order is another one, so that its own run is healthy.
    scenario.launch->order = std::string_view(order) == "random" ? model::LaunchOrder::lockstep
                                                                 : model::LaunchOrder::random;
    const Judgement judgement = judge_fresh(target, scenario, schedules());
    EXPECT_EQ(judgement.verdict, Verdict::failed) << order;
    EXPECT_EQ(judgement.kind, Kind::defect) << order;
    EXPECT_NE(judgement.text.find("in the order " + std::string(order)), std::string::npos)
        << judgement.text;
    // A race, or a read before anything was written, as the order has it.
    EXPECT_NE(judgement.text.find(" at kernels/cuda/"), std::string::npos) << judgement.text;
  }
}

TEST(Schedules, WrongNumbersUnderOneOrderAreOtherBits) {
  FaultyUnderOneOrder target("unfused_wrong_head", "starve");
  const Judgement judgement = judged(target, R"({"schema":1,"operator":"gqa","query_heads":4,
      "kv_heads":2,"head_size":8,"launch":{"kernel":"unfused"},"steps":[{"append":5}]})");
  EXPECT_EQ(judgement.verdict, Verdict::failed);
  EXPECT_EQ(judgement.kind, Kind::bits_difference);
  EXPECT_NE(judgement.text.find("in the order starve"), std::string::npos) << judgement.text;
}

TEST(Schedules, ADefectInTheMainRunIsLeftToAnswers) {
  const auto target = kernels::make_cuda_simt_planted("cuda-simt", "decode_no_warp_merge_sync");
  ASSERT_NE(target, nullptr);
  EXPECT_EQ(judged(*target, kDecode).verdict, Verdict::skipped);
  const Judgement answers =
      judge_fresh(*target, model::parse_scenario(kDecode), *find_property("target.answers"));
  EXPECT_EQ(answers.verdict, Verdict::failed);
  EXPECT_EQ(answers.kind, Kind::defect);
  EXPECT_NE(answers.text.find("kernels/cuda/"), std::string::npos) << answers.text;
}

TEST(Schedules, BrokenByOneBitIsFound) {
  constexpr const char* kAny = R"({"schema":1,"operator":"gqa","head_size":8,
      "steps":[{"append":3}]})";
  const auto breaker = make_promise_breaker(Promise::schedule);
  EXPECT_EQ(judged(*breaker, kAny).verdict, Verdict::failed);
  EXPECT_EQ(judged(*make_promise_breaker({}), kAny).verdict, Verdict::passed);
  const auto silent = make_promise_breaker(Promise::schedule, "schedule_bits");
  EXPECT_EQ(schedules().inapplicable(model::parse_scenario(kAny), silent->capabilities()),
            "the target does not promise schedule_bits");
}

}  // namespace
}  // namespace kvcheck::properties
