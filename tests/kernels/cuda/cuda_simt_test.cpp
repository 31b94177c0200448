// The targets cuda-simt and cuda-simt-q8: claims, refusals, planted faults, and a session that
// broke.
#include "kernels/cuda/cuda_simt.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "kernels/cuda/planted.h"
#include "tests/kernels/cpu_sequence.h"

namespace kvcheck::kernels {
namespace {

std::string refusal_of(Target& target, const SessionConfig& config) {
  const auto answer = target.open(config);
  const auto* refusal = std::get_if<Refusal>(&answer);
  return refusal == nullptr ? "" : refusal->reason;
}

TEST(CudaSimt, CanRunHere) {
  EXPECT_EQ(cuda_simt_problem(), "");
  EXPECT_EQ(make_cuda_simt()->capabilities().name, "cuda-simt");
  EXPECT_EQ(make_cuda_simt_quantised()->capabilities().name, "cuda-simt-q8");
}

TEST(CudaSimt, ClaimsWhatItsKernelsCompute) {
  const auto target = make_cuda_simt();
  const Capabilities& can = target->capabilities();
  EXPECT_EQ(can.operators, (std::set<std::string>{"gqa", "attention"}));
  EXPECT_EQ(can.element_types, (std::set<std::string>{"f32", "f16", "bf16"}));
  for (const char* feature :
       {"launches", "schedule_bits", "window_bits", "capacity_bits", "company_bits", "repeat_bits",
        "nan_safe", "attention_bias", "softcap", "head_sink", "smooth_softmax", "rollback"}) {
    EXPECT_TRUE(can.has(feature)) << feature;
  }
  for (const char* feature : {"rotary", "qk_norm", "qk_output", "packed_qkv", "split_bits",
                              "softmax_precision", "cache_int8"}) {
    EXPECT_FALSE(can.has(feature)) << feature;
  }
}

TEST(CudaSimt, TheQuantisedOneTakesInt8CachesAlone) {
  const auto target = make_cuda_simt_quantised();
  const Capabilities& can = target->capabilities();
  EXPECT_EQ(can.operators, std::set<std::string>{"gqa"});
  EXPECT_TRUE(can.has("cache_int8") && can.has("cache_quantised_only"));
  EXPECT_FALSE(can.has("cache_int4"));
  EXPECT_NE(refusal_of(*target, full_cache()), "");
}

TEST(CudaSimt, RefusesWhatItDoesNotCompute) {
  const auto target = make_cuda_simt();
  SessionConfig config = full_cache();
  config.packed_qkv = true;
  EXPECT_EQ(
      refusal_of(*target, config),
      "packed_qkv = given: cuda-simt does not compute it; leave it out, or use another target");
  config = full_cache();
  config.qk_output = "biased";
  EXPECT_NE(refusal_of(*target, config), "");
  config = full_cache();
  config.qk_norm.emplace();
  config.qk_norm->query_weight = config.qk_norm->key_weight = tensor_of(ElementType::f32, {1}, {1});
  EXPECT_NE(refusal_of(*target, config), "");
  config = attention();
  config.softmax_precision = ElementType::f16;
  EXPECT_NE(refusal_of(*target, config), "");
}

TEST(CudaSimt, RefusesLaunchesThatNoDeviceMakes) {
  const auto target = make_cuda_simt();
  SessionConfig config = full_cache();
  config.launch = LaunchConfig{.kernel = "fastest"};
  EXPECT_EQ(refusal_of(*target, config),
            "launch.kernel = fastest: must be one of any, unfused, decode, decode_matrix, prefill");
  for (const std::int64_t threads : {-32, 33, 1056}) {
    config.launch = LaunchConfig{.threads = threads};
    EXPECT_NE(refusal_of(*target, config).find("must be a multiple of 32 up to 1024; 0 = any"),
              std::string::npos)
        << threads;
  }
  config.launch = LaunchConfig{.split_positions = -1};
  EXPECT_EQ(refusal_of(*target, config),
            "launch.split_positions = -1: must be between 0 and 2147483647; 0 = any");
}

TEST(CudaSimt, KnowsFiveOrders) {
  const auto target = make_cuda_simt();
  SessionConfig config = full_cache();
  for (const char* order : {"lockstep", "random", "reverse", "priority", "starve"}) {
    config.launch = LaunchConfig{.order = order};
    EXPECT_EQ(refusal_of(*target, config), "") << order;
  }
  config.launch->order = "sideways";
  EXPECT_EQ(refusal_of(*target, config),
            "launch.order = sideways: must be one of lockstep, random, reverse, priority, starve");
}

TEST(CudaSimt, ListsEveryFaultThatSessionsCanShow) {
  const auto faults = cuda_simt_faults();
  std::set<std::string> names;
  EXPECT_EQ(device::device_faults().size(), 59u);
  EXPECT_EQ(faults.size(), 50u);  // Three show in a counter alone, six in no session.
  for (const FaultInfo& fault : faults) {
    EXPECT_TRUE(names.insert(fault.name).second) << fault.name;
    EXPECT_EQ(fault.name.find('-'), std::string::npos) << fault.name;
    EXPECT_TRUE(fault.kind == "device defect" || fault.kind == "device kernel") << fault.kind;
    const auto planted = make_cuda_simt_planted(fault.target, fault.name);
    ASSERT_NE(planted, nullptr) << fault.name;
    EXPECT_EQ(planted->capabilities().name, fault.target + "+" + fault.name);
  }
}

TEST(CudaSimt, PlantsNoFaultThatNoSessionShows) {
  for (const char* name : {"decode_bank_stride", "matrix_bank_stride", "prefill_no_swizzle",
                           "move_ascending_only", "decode_narrow_position"}) {
    EXPECT_EQ(make_cuda_simt_planted("cuda-simt", name), nullptr) << name;
  }
}

TEST(CudaSimt, PlantsAFaultInTheTargetThatShowsIt) {
  EXPECT_EQ(make_cuda_simt_planted("cuda-simt", "no_such_fault"), nullptr);
  EXPECT_EQ(make_cuda_simt_planted("cuda", "move_barrier_removed"), nullptr);
  EXPECT_EQ(make_cuda_simt_planted("cuda-simt-q8", "move_barrier_removed"), nullptr);
  EXPECT_EQ(make_cuda_simt_planted("cuda-simt", "append_clamp_one_short"), nullptr);
  EXPECT_NE(make_cuda_simt_planted("cuda-simt-q8", "append_clamp_one_short"), nullptr);
}

/// The failure in an answer that should be one.
template <class T>
Failure failure_in(const Answer<T>& answer) {
  const auto* failure = std::get_if<Failure>(&answer);
  EXPECT_NE(failure, nullptr);
  return failure == nullptr ? Failure{Failure::Kind::nonsense, ""} : *failure;
}

TEST(CudaSimt, ASessionWithADefectStaysBroken) {
  const auto target = make_cuda_simt_planted("cuda-simt", "unfused_barrier_removed");
  ASSERT_NE(target, nullptr);
  SessionConfig config = full_cache();
  config.launch = LaunchConfig{.threads = 64};  // The barrier is between warps.
  auto opened = target->open(config);
  Session& session = *std::get<std::unique_ptr<Session>>(opened);
  const StepRequest request = Sequence(full_cache()).request({3}, {3});
  const Failure first = failure_in(session.step(request));
  EXPECT_EQ(first.kind, Failure::Kind::defect);
  EXPECT_NE(first.detail.find("data race at kernels/cuda/unfused.cuh:"), std::string::npos)
      << first.detail;
  const Counts one{1};
  for (const Failure& later : {failure_in(session.step(request)), failure_in(session.rollback(one)),
                               failure_in(session.load({})), failure_in(session.present())}) {
    EXPECT_EQ(later.kind, Failure::Kind::defect);
    EXPECT_EQ(later.detail, first.detail);
  }
  // Another session of the same target starts afresh.
  auto again = target->open(config);
  EXPECT_TRUE(
      std::holds_alternative<CacheRows>(std::get<std::unique_ptr<Session>>(again)->present()));
}

TEST(CudaSimt, AnOutputThatNobodyWroteIsADefect) {
  const auto target = make_cuda_simt_planted("cuda-simt", "unfused_empty_row_left");
  ASSERT_NE(target, nullptr);
  SessionConfig config = full_cache(0);  // No query sees anything.
  auto opened = target->open(config);
  const Failure failure = failure_in(
      std::get<std::unique_ptr<Session>>(opened)->step(Sequence(config).request({1}, {1})));
  EXPECT_EQ(failure.kind, Failure::Kind::defect);
  EXPECT_EQ(failure.detail.find("not written: byte 0 of 4 of 'output' was to be written, and no "
                                "launch did; launched were unfused_scores_kernel "
                                "(kernels/cuda/unfused.cuh:"),
            0u)
      << failure.detail;
  EXPECT_NE(failure.detail.find("), unfused_values_kernel (kernels/cuda/unfused.cuh:"),
            std::string::npos)
      << failure.detail;
  auto healthy = make_cuda_simt()->open(config);
  EXPECT_TRUE(std::holds_alternative<StepResult>(
      std::get<std::unique_ptr<Session>>(healthy)->step(Sequence(config).request({1}, {1}))));
}

TEST(CudaSimt, ARefusedStepBreaksNothing) {
  SessionConfig config = full_cache();
  auto opened = make_cuda_simt()->open(config);
  Session& session = *std::get<std::unique_ptr<Session>>(opened);
  const Sequence requests(config);
  EXPECT_TRUE(std::holds_alternative<Refusal>(session.step(requests.request({17}, {17}))));
  EXPECT_TRUE(std::holds_alternative<StepResult>(session.step(requests.request({16}, {16}))));
}

}  // namespace
}  // namespace kvcheck::kernels
