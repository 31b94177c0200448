// Own targets in a process of their own: what they do to it stays there.
#include <chrono>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "kernels/cuda/cuda_gpu.h"
#include "kernels/process/process_target.h"
#include "kernels/registry.h"
#include "tests/kernels/cpu_sequence.h"
#include "tests/kernels/expect_contains.h"

namespace kvcheck::kernels {
namespace {

using namespace std::chrono_literals;

RegistryOptions stand_in(std::chrono::milliseconds limit = 60s) {
  RegistryOptions options;
  options.program = KVCHECK_SERVED_STAND_IN;
  options.time_limit = limit;
  return options;
}

std::unique_ptr<Target> served(const std::string& name, const RegistryOptions& options) {
  auto made = make_served_target(name, options);
  if (const auto* unavailable = std::get_if<Unavailable>(&made)) {
    ADD_FAILURE() << unavailable->reason;
    return nullptr;
  }
  return std::move(std::get<std::unique_ptr<Target>>(made));
}

/// A stand-in of served_stand_in.cpp, whose steps break where breaking_step() asks them.
std::unique_ptr<Target> breaking(const std::string& how, std::chrono::milliseconds limit = 60s) {
  ProcessOptions options;
  options.label = how;
  options.program = KVCHECK_SERVED_STAND_IN;
  options.arguments = {"serve", how};
  options.time_limit = limit;
  auto made = make_process_target(std::move(options));
  if (const auto* failure = std::get_if<Failure>(&made)) {
    ADD_FAILURE() << failure->detail;
    return nullptr;
  }
  return std::move(std::get<std::unique_ptr<Target>>(made));
}

std::unique_ptr<Session> opened(Target& target) {
  auto answer = target.open(full_cache());
  if (auto* session = std::get_if<std::unique_ptr<Session>>(&answer)) return std::move(*session);
  ADD_FAILURE() << "open was not answered ok";
  return nullptr;
}

StepRequest sound_step() {
  StepRequest step;
  step.tokens = step.queries = {1};
  step.query = step.key = step.value = tensor_of(ElementType::f32, {1, 1, 1, 1}, {3});
  return step;
}

StepRequest breaking_step() {
  StepRequest step = sound_step();
  step.poison = PoisonRows{1, {1}};
  return step;
}

/// The failure of a step that breaks; afterwards the session is dead, and the next one is not.
Failure failure_of(const std::string& how, std::chrono::milliseconds limit = 60s) {
  const auto target = breaking(how, limit);
  if (!target) return {};
  const auto session = opened(*target);
  if (!session) return {};
  EXPECT_TRUE(std::holds_alternative<StepResult>(session->step(sound_step())));
  const auto answer = session->step(breaking_step());
  const auto* failure = std::get_if<Failure>(&answer);
  EXPECT_NE(failure, nullptr);
  if (failure == nullptr) return {};
  const auto after = session->step(sound_step());
  EXPECT_TRUE(std::holds_alternative<Failure>(after));
  const auto next = opened(*target);
  EXPECT_TRUE(next && std::holds_alternative<StepResult>(next->step(sound_step())));
  return *failure;
}

TEST(ServedTarget, AnswersLikeTheOneOfThisProcess) {
  for (const char* name : {"cpu-naive", "cpu-flash-q8", "cpu-naive+window_one_wide@row"}) {
    const auto here = std::get<std::unique_ptr<Target>>(make_own_target(name));
    const auto there = served(name, stand_in());
    ASSERT_NE(there, nullptr);
    EXPECT_EQ(there->capabilities().name, here->capabilities().name);
    EXPECT_EQ(there->capabilities().features, here->capabilities().features);
  }
  const auto there = served("cpu-naive", stand_in());
  const auto session = opened(*there);
  ASSERT_NE(session, nullptr);
  const auto answer = session->step(sound_step());
  ASSERT_TRUE(std::holds_alternative<StepResult>(answer));
  EXPECT_EQ(numbers_of(*std::get<StepResult>(answer).output), Numbers{3});
}

TEST(ServedTarget, OfTheGpuAnswersLikeTheOneOfThisProcess) {
  if (!cuda_problem().empty()) GTEST_SKIP() << "cuda " << cuda_problem();
  for (const RegistryOptions& options : {RegistryOptions{}, stand_in()}) {
    const auto made = make_target("cuda", options);
    ASSERT_TRUE(std::holds_alternative<std::unique_ptr<Target>>(made));
    const auto& target = std::get<std::unique_ptr<Target>>(made);
    EXPECT_EQ(target->capabilities().name, "cuda");
    const auto session = opened(*target);
    ASSERT_NE(session, nullptr);
    const auto answer = session->step(sound_step());
    ASSERT_TRUE(std::holds_alternative<StepResult>(answer));
    EXPECT_EQ(numbers_of(*std::get<StepResult>(answer).output), Numbers{3});
  }
}

TEST(ServedTarget, EndsItsProcessAloneWhenItDies) {
  const Failure dead = failure_of("dies");
  EXPECT_EQ(dead.kind, Failure::Kind::crash);
  expect_contains(dead.detail, "exit code 3");
  expect_contains(dead.detail, "standard error ends with: the device is gone");
  const Failure killed = failure_of("is_killed");
  EXPECT_EQ(killed.kind, Failure::Kind::crash);
  expect_contains(killed.detail, "signal 9");
}

TEST(ServedTarget, StartsAfreshAfterAFailureOfItsOwn) {
  const Failure lost = failure_of("loses_context");
  EXPECT_EQ(lost.kind, Failure::Kind::crash);
  expect_contains(lost.detail, "an illegal memory access was encountered");
  const Failure defect = failure_of("defect");
  EXPECT_EQ(defect.kind, Failure::Kind::defect);
  expect_contains(defect.detail, "data race at decode.cuh:7");
  const Failure thrown = failure_of("throws");
  EXPECT_EQ(thrown.kind, Failure::Kind::crash);
  expect_contains(thrown.detail, "no such kernel");
}

TEST(ServedTarget, IsEndedWhenItHangs) {
  const Failure hung = failure_of("hangs", 1500ms);
  EXPECT_EQ(hung.kind, Failure::Kind::hang);
  expect_contains(hung.detail, "did not answer step within 1500 ms");
}

TEST(ServedTarget, MayPrint) {
  const auto target = breaking("prints");
  ASSERT_NE(target, nullptr);
  const auto session = opened(*target);
  ASSERT_NE(session, nullptr);
  EXPECT_TRUE(std::holds_alternative<StepResult>(session->step(breaking_step())));
  EXPECT_TRUE(std::holds_alternative<StepResult>(session->step(breaking_step())));
}

TEST(ServedTarget, SaysWhyItDoesNotStart) {
  RegistryOptions options = stand_in();
  options.program = "/nowhere/kvcheck";
  const auto made = make_served_target("cpu-naive", options);
  ASSERT_TRUE(std::holds_alternative<Unavailable>(made));
  EXPECT_FALSE(std::get<Unavailable>(made).unknown);
  expect_contains(std::get<Unavailable>(made).reason,
                  "cpu-naive does not start in a process of its own: /nowhere/kvcheck cannot be");
  const auto unknown = make_served_target("cpu-navie", stand_in());
  ASSERT_TRUE(std::holds_alternative<Unavailable>(unknown));
  EXPECT_TRUE(std::get<Unavailable>(unknown).unknown);
}

TEST(ServedTarget, IsTheWayOfTheGpuAlone) {
  for (const char* name : {"cuda", "cuda-q8"}) {
    EXPECT_FALSE(runs_in_this_process(name, stand_in())) << name;
    EXPECT_TRUE(runs_in_this_process(name, {})) << name;
  }
  for (const char* name : {"cpu-naive", "cpu-flash+window_one_wide", "cuda-simt"}) {
    EXPECT_TRUE(runs_in_this_process(name, stand_in())) << name;
  }
  for (const char* name : {"onnxruntime", "exec:./cpu-naive", "no-such-target"}) {
    EXPECT_FALSE(runs_in_this_process(name, stand_in())) << name;
  }
}

}  // namespace
}  // namespace kvcheck::kernels
