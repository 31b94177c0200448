// An own target in a process of its own answers what the same target answers in this one, bit for
// bit, over scenarios of every feature.
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "kernels/registry.h"
#include "model/scenario_json.h"
#include "properties/case.h"
#include "properties/convert.h"
#include "properties/execution.h"
#include "properties/scenario_stream.h"

namespace kvcheck::properties {
namespace {

using kernels::Tensor;

std::unique_ptr<kernels::Target> here(const std::string& name) {
  return std::get<std::unique_ptr<kernels::Target>>(kernels::make_own_target(name));
}

std::unique_ptr<kernels::Target> there(const std::string& name) {
  kernels::RegistryOptions options;
  options.program = KVCHECK_TOOL;
  options.time_limit = std::chrono::minutes(1);
  auto made = kernels::make_served_target(name, options);
  if (const auto* unavailable = std::get_if<kernels::Unavailable>(&made)) {
    ADD_FAILURE() << unavailable->reason;
    return nullptr;
  }
  return std::get<std::unique_ptr<kernels::Target>>(std::move(made));
}

bool same(const std::optional<Tensor>& a, const std::optional<Tensor>& b) {
  if (!a || !b) return a.has_value() == b.has_value();
  return a->type == b->type && a->shape == b->shape && a->bytes == b->bytes;
}

std::optional<Tensor> row_part(const kernels::StepResult& result,
                               Tensor kernels::CacheRows::*part) {
  if (!result.rows) return std::nullopt;
  return (*result.rows).*part;
}

/// What differs between two answers; empty = nothing.
std::string difference(const StepAnswer& a, const StepAnswer& b) {
  if (a.status != b.status || a.reason != b.reason) {
    return fmt::format("'{}' in this process, '{}' in the other", a.reason, b.reason);
  }
  if (!same(a.result.output, b.result.output)) return "outputs";
  if (!same(a.result.visible, b.result.visible)) return "visible rows";
  if (!same(a.result.qk, b.result.qk)) return "intermediates";
  for (const auto part : {&kernels::CacheRows::key, &kernels::CacheRows::value}) {
    if (!same(row_part(a.result, part), row_part(b.result, part))) return "rows";
  }
  return "";
}

/// How often a thing was asked for, so that equal bits say something of it.
using Asked = std::map<std::string, int>;

Interposer counting(Asked& asked) {
  Interposer counts;
  counts.config = [&asked](kernels::SessionConfig& config) {
    asked["head_sink"] += config.head_sink.has_value();
    asked["rotary"] += config.rotary.has_value();
    asked["qk_norm"] += config.qk_norm.has_value();
    asked["quantisation"] += config.quantisation.quantised();
    asked["per_channel"] += config.quantisation.per_channel;
    asked["launch"] += config.launch.has_value();
    asked["qk_output"] += config.qk_output != "none";
    asked["softcap"] += config.softcap != 0;
    asked["smooth_softmax"] += config.smooth_softmax;
    asked["input_rank"] += config.input_rank != 4;
    asked["packed_qkv"] += config.packed_qkv;
    asked["softmax_precision"] += config.softmax_precision.has_value();
    asked["threads"] += config.threads != 0;
    asked["isa"] += !config.isa.empty();
    asked["right_window"] += config.right_window_size != -1;
    asked["initial poison"] += config.initial_poison != 0;
    asked["batch"] += config.batch > 1;
  };
  counts.append = [&asked](std::size_t, kernels::StepRequest& step) {
    asked["mask"] += step.mask.has_value();
    asked["position_ids"] += step.position_ids.has_value();
    asked["poison"] += step.poison.has_value();
  };
  counts.load = [&asked](std::size_t, kernels::LoadRequest&) { ++asked["load"]; };
  return counts;
}

/// Runs the scenario in both processes.
void expect_same(kernels::Target& near, kernels::Target& far, const model::Scenario& scenario,
                 std::uint64_t index, Asked& asked) {
  Case c(near, scenario);
  const Interposer counts = counting(asked);
  ExecuteOptions options;
  options.threads = static_cast<int>(index % 3);
  const auto& isas = near.capabilities().isas;
  if (!isas.empty() && index % 4 == 1) options.isa = isas[index % isas.size()];
  const Execution expected = execute(near, c.scenario(), c.timeline(), c.fill(), options);
  options.interposer = &counts;
  const Execution found = execute(far, c.scenario(), c.timeline(), c.fill(), options);
  EXPECT_EQ(difference(expected.open, found.open), "") << model::canonical_text(scenario);
  ASSERT_EQ(expected.steps.size(), found.steps.size());
  for (std::size_t step = 0; step < expected.steps.size(); ++step) {
    ++asked["steps"];
    asked["rollback"] += std::holds_alternative<model::Rollback>(scenario.steps[step]);
    ASSERT_EQ(difference(expected.steps[step], found.steps[step]), "")
        << "step " << step << " of " << model::canonical_text(scenario);
  }
  EXPECT_EQ(expected.complete, found.complete);
  EXPECT_EQ(expected.refusal_kept_state, found.refusal_kept_state);
}

/// So many scenarios of each phase, spread over the lattice.
void expect_same_bits(const std::string& name, std::uint64_t scenarios, Asked& asked) {
  const auto near = here(name);
  const auto far = there(name);
  ASSERT_NE(far, nullptr);
  StreamOptions options;
  options.seed = 7;
  const ScenarioStream stream(near->capabilities(), options);
  std::uint64_t run = 0;
  for (const Phase phase : {Phase::lattice, Phase::random}) {
    const std::uint64_t count = std::min(stream.count(phase), std::uint64_t{1} << 40);
    const std::uint64_t stride = phase == Phase::lattice ? count / scenarios + 1 : 1;
    for (std::uint64_t i = 0; i < scenarios && i * stride < count; ++i) {
      const auto scenario = stream.at(phase, i * stride);
      if (!scenario || !unsupported_reason(near->capabilities(), *scenario).empty()) continue;
      expect_same(*near, *far, *scenario, i, asked);
      if (testing::Test::HasFailure()) return;
      ++run;
    }
  }
  EXPECT_GT(run, scenarios) << name;
}

TEST(ServedBits, AreThoseOfThisProcess) {
  Asked asked;
  for (const char* name : {"cpu-naive", "cpu-flash", "cpu-naive-q4", "cpu-flash-q8"}) {
    expect_same_bits(name, 150, asked);
  }
#if KVCHECK_HAS_SIMT
  expect_same_bits("cuda-simt", 60, asked);
  expect_same_bits("cuda-simt-q8", 40, asked);
  EXPECT_GT(asked["launch"], 0);
#endif
  for (const char* what : {"head_sink",
                           "rotary",
                           "qk_norm",
                           "quantisation",
                           "per_channel",
                           "qk_output",
                           "softcap",
                           "smooth_softmax",
                           "input_rank",
                           "packed_qkv",
                           "softmax_precision",
                           "threads",
                           "isa",
                           "right_window",
                           "initial poison",
                           "batch",
                           "mask",
                           "position_ids",
                           "poison",
                           "load",
                           "rollback"}) {
    EXPECT_GT(asked[what], 0) << what << " was never asked for";
  }
}

TEST(ServedBits, RefusalsSayTheSame) {
  const auto near = here("cpu-flash");
  const auto far = there("cpu-flash");
  ASSERT_NE(far, nullptr);
  kernels::SessionConfig config;
  config.layout = "paged";
  const auto expected = near->open(config), found = far->open(config);
  ASSERT_TRUE(std::holds_alternative<kernels::Refusal>(expected));
  ASSERT_TRUE(std::holds_alternative<kernels::Refusal>(found));
  EXPECT_EQ(std::get<kernels::Refusal>(found).reason, std::get<kernels::Refusal>(expected).reason);
}

#if KVCHECK_HAS_SIMT
constexpr const char* kDecode = R"({"schema":1,"operator":"gqa","element_type":"f16",
    "head_size":8,"query_heads":2,"launch":{"kernel":"decode","threads":128},
    "steps":[{"append":40,"queries":0},{"append":1}]})";

/// What is said of the store behind the first element of the last output.
std::string last_store(kernels::Target& target) {
  const auto scenario = model::parse_scenario(kDecode);
  Case c(target, scenario);
  std::string words;
  Interposer recording;
  recording.config = [](kernels::SessionConfig& config) { config.record_stores = true; };
  recording.after = [&](std::size_t, kernels::Session& session, const kernels::StepResult&) {
    words = session.last_store({});
  };
  ExecuteOptions options;
  options.interposer = &recording;
  execute(target, c.scenario(), c.timeline(), c.fill(), options);
  return words;
}

TEST(ServedBits, StoresAreNamedTheSame) {
  const auto near = here("cuda-simt");
  const auto far = there("cuda-simt");
  ASSERT_NE(far, nullptr);
  const std::string words = last_store(*near);
  EXPECT_NE(words.find("stored at kernels/cuda/"), std::string::npos) << words;
  EXPECT_EQ(last_store(*far), words);
}

TEST(ServedBits, ADefectComesWithItsPlace) {
  const char* fault = "cuda-simt+append_written_twice";
  const auto near = here(fault);
  const auto far = there(fault);
  ASSERT_NE(far, nullptr);
  const auto scenario = model::parse_scenario(kDecode);
  Case c(*near, scenario);
  const Execution expected = execute(*near, c.scenario(), c.timeline(), c.fill());
  const Execution found = execute(*far, c.scenario(), c.timeline(), c.fill());
  ASSERT_TRUE(expected.first_problem() && found.first_problem());
  ASSERT_EQ(*found.first_problem(), *expected.first_problem());
  const auto step = static_cast<std::size_t>(*expected.first_problem());
  const StepAnswer& broke = expected.steps[step];
  const StepAnswer& told = found.steps[step];
  ASSERT_EQ(broke.status, StepAnswer::Status::broke);
  ASSERT_EQ(told.status, StepAnswer::Status::broke);
  EXPECT_EQ(told.broke_as, kernels::Failure::Kind::defect);
  EXPECT_NE(told.reason.find(broke.reason), std::string::npos) << told.reason;
}
#endif

}  // namespace
}  // namespace kvcheck::properties
