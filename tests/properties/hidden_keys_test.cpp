// What huge keys and values of one head may change: neither its own queries that do not see them,
// nor other heads, entries and earlier steps.
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "kernels/cpu/naive/cpu_naive.h"
#include "model/scenario_json.h"
#include "properties/catalog.h"
#include "tests/properties/forwarding_session.h"

namespace kvcheck::properties {
namespace {

/// Where huge values show beside their own head.
enum class Leak { none, other_head, other_entry, first_step };

struct Place {
  std::int64_t entry, head;
};

/// The entry and the KV head whose values are huge.
std::optional<Place> huge_place(const kernels::Tensor& value) {
  for (std::int64_t i = 0; i < value.elements(); ++i) {
    if (!(std::abs(element(value, i)) > 0x1p60)) continue;
    const std::int64_t row = i / value.shape[3];
    return Place{row / value.shape[2] / value.shape[1], row % value.shape[2]};
  }
  return std::nullopt;
}

/// The inner session with the last bit of one output of query 0 flipped once huge values came in.
class LeakingSession final : public ForwardingSession {
 public:
  LeakingSession(std::unique_ptr<kernels::Session> inner, Leak leak)
      : ForwardingSession(std::move(inner)), leak_(leak) {}

  kernels::Answer<kernels::StepResult> step(const kernels::StepRequest& request) override {
    if (!huge_) huge_ = huge_place(request.value);
    auto answer = ForwardingSession::step(request);
    const bool first = steps_++ == 0;
    if (leak_ == Leak::none || !huge_ || (leak_ == Leak::first_step && !first)) return answer;
    kernels::Tensor& output = *std::get<kernels::StepResult>(answer).output;
    const bool other_entry = leak_ == Leak::other_entry;
    const std::int64_t entry = other_entry ? 1 - huge_->entry : huge_->entry;
    const std::int64_t head = other_entry ? huge_->head : 1 - huge_->head;
    const std::int64_t row = entry * output.shape[1] * output.shape[2] + head;
    const auto byte = static_cast<std::size_t>(row * output.shape[3]) * sizeof(float);
    output.bytes[byte] ^= std::byte{1};
    return answer;
  }

 private:
  Leak leak_;
  std::optional<Place> huge_;
  int steps_ = 0;
};

class LeakingTarget final : public kernels::Target {
 public:
  LeakingTarget(Leak leak, bool repeats)
      : inner_(kernels::make_cpu_naive()), capabilities_(inner_->capabilities()), leak_(leak) {
    if (!repeats) capabilities_.features.erase("repeat_bits");
  }
  const kernels::Capabilities& capabilities() const override { return capabilities_; }
  kernels::Answer<std::unique_ptr<kernels::Session>> open(
      const kernels::SessionConfig& config) override {
    auto answer = inner_->open(config);
    auto& session = std::get<std::unique_ptr<kernels::Session>>(answer);
    return std::make_unique<LeakingSession>(std::move(session), leak_);
  }

 private:
  std::unique_ptr<kernels::Target> inner_;
  kernels::Capabilities capabilities_;
  Leak leak_;
};

/// Judges eight seeds; how many fail. `text` is that of the last that did.
int failures(Leak leak, bool repeats, std::string& text) {
  LeakingTarget target(leak, repeats);
  int count = 0;
  for (int seed = 0; seed < 8; ++seed) {
    const auto scenario = model::parse_scenario(R"({"schema":1,"operator":"gqa","head_size":8,
        "batch":2,"query_heads":2,"kv_heads":2,
        "cache":{"layout":"full","capacity":9,"window_size":2},"fill":{"kind":"random","seed":)" +
                                                std::to_string(seed) + R"(},
        "steps":[{"append":4},{"append":3},{"append":1}]})");
    Case c(target, scenario);
    const Judgement judgement = find_property("mask.hidden_keys")->judge(c);
    EXPECT_NE(judgement.verdict, Verdict::skipped) << judgement.text;
    if (judgement.verdict != Verdict::failed) continue;
    EXPECT_EQ(judgement.kind, Kind::leak);
    text = judgement.text;
    ++count;
  }
  return count;
}

TEST(HiddenKeys, ChangeNothingInAHealthyTarget) {
  std::string text;
  EXPECT_EQ(failures(Leak::none, true, text), 0) << text;
}

TEST(HiddenKeys, ChangeNoOtherHeadAndNoOtherEntry) {
  for (const Leak leak : {Leak::other_head, Leak::other_entry}) {
    std::string text;
    EXPECT_EQ(failures(leak, true, text), 8);
    EXPECT_NE(text.find("when all keys and values of batch entry"), std::string::npos) << text;
    EXPECT_NE(text.find(", KV head "), std::string::npos) << text;
  }
}

/// The query stands in a later step, or in the first one.
TEST(HiddenKeys, ChangeNothingInEarlierSteps) {
  std::string text;
  EXPECT_GT(failures(Leak::first_step, true, text), 4);
  EXPECT_NE(text.find("step 0 "), std::string::npos) << text;
}

/// Where two runs need not be alike, all that is not about the query itself is left out.
TEST(HiddenKeys, AreHeldAgainstOthersWhereRunsAreAlike) {
  std::string text;
  EXPECT_EQ(failures(Leak::other_entry, false, text), 0) << text;
}

}  // namespace
}  // namespace kvcheck::properties
