// target.answers against targets that refuse, die and change state.
#include <gtest/gtest.h>

#include "kernels/cpu/naive/cpu_naive.h"
#include "model/scenario_json.h"
#include "properties/catalog.h"
#include "properties/search.h"

namespace kvcheck::properties {
namespace {

using kernels::Answer;

enum class Manner { refuses_third_step, dies, answers_nonsense, refuses_open, forgets_on_refusal };

/// A healthy session with one bad manner.
class Session final : public kernels::Session {
 public:
  Session(std::unique_ptr<kernels::Session> inner, Manner manner)
      : inner_(std::move(inner)), manner_(manner) {}

  Answer<kernels::StepResult> step(const kernels::StepRequest& request) override {
    ++steps_;
    if (manner_ == Manner::refuses_third_step && steps_ == 3) return kernels::Refusal{"tired"};
    if (manner_ == Manner::dies) {
      return kernels::Failure{kernels::Failure::Kind::crash, "killed by signal 11"};
    }
    if (manner_ == Manner::answers_nonsense) {
      return kernels::Failure{kernels::Failure::Kind::nonsense, "output has shape [1]"};
    }
    return inner_->step(request);
  }
  Answer<std::monostate> rollback(std::span<const std::int64_t> tokens) override {
    auto answer = inner_->rollback(tokens);
    forget_ = std::holds_alternative<kernels::Refusal>(answer);
    return answer;
  }
  Answer<std::monostate> load(const kernels::LoadRequest& request) override {
    return inner_->load(request);
  }
  Answer<kernels::CacheRows> present() override {
    auto answer = inner_->present();
    if (forget_ && manner_ == Manner::forgets_on_refusal) {
      std::get<kernels::CacheRows>(answer).key.bytes[0] ^= std::byte{1};
    }
    return answer;
  }

 private:
  std::unique_ptr<kernels::Session> inner_;
  Manner manner_;
  int steps_ = 0;
  bool forget_ = false;
};

class Target final : public kernels::Target {
 public:
  explicit Target(Manner manner) : manner_(manner), inner_(kernels::make_cpu_naive()) {}
  const kernels::Capabilities& capabilities() const override { return inner_->capabilities(); }
  Answer<std::unique_ptr<kernels::Session>> open(const kernels::SessionConfig& config) override {
    if (manner_ == Manner::refuses_open) return kernels::Refusal{"no such operator"};
    auto opened = inner_->open(config);
    return std::unique_ptr<kernels::Session>(std::make_unique<Session>(
        std::move(std::get<std::unique_ptr<kernels::Session>>(opened)), manner_));
  }

 private:
  Manner manner_;
  std::unique_ptr<kernels::Target> inner_;
};

Judgement judge(Manner manner, const char* steps) {
  Target target(manner);
  const auto scenario = model::parse_scenario(
      std::string(R"({"schema":1,"operator":"gqa","head_size":8,"cache":{"layout":"block",
      "capacity":6,"window_size":4},"steps":)") +
      steps + "}");
  return judge_fresh(target, scenario, *find_property("target.answers"));
}

TEST(Answers, ARefusalOfALegalStepIsWronglyRefused) {
  const auto judgement =
      judge(Manner::refuses_third_step, R"([{"append":1},{"append":1},{"append":1}])");
  EXPECT_EQ(judgement.verdict, Verdict::failed);
  EXPECT_EQ(judgement.kind, Kind::wrongly_refused);
  EXPECT_EQ(judgement.hint.step, 2);
  EXPECT_NE(judgement.text.find("tired"), std::string::npos);
}

TEST(Answers, ARefusalAtTheStartIsWronglyRefused) {
  EXPECT_EQ(judge(Manner::refuses_open, R"([{"append":1}])").kind, Kind::wrongly_refused);
}

TEST(Answers, ADeathIsACrash) {
  const auto judgement = judge(Manner::dies, R"([{"append":1}])");
  EXPECT_EQ(judgement.kind, Kind::crash);
  EXPECT_NE(judgement.text.find("signal 11"), std::string::npos);
}

TEST(Answers, AMalformedAnswerIsNonsense) {
  EXPECT_EQ(judge(Manner::answers_nonsense, R"([{"append":1}])").kind, Kind::nonsense);
}

TEST(Answers, ARefusedRollbackMustKeepTheRows) {
  constexpr const char* kTooDeep = R"([{"append":12},{"rollback":3}])";
  EXPECT_EQ(judge(Manner::forgets_on_refusal, kTooDeep).kind, Kind::wrong_row);
  const auto healthy = kernels::make_cpu_naive();
  const auto scenario = model::parse_scenario(R"({"schema":1,"operator":"gqa","head_size":8,
      "cache":{"layout":"block","capacity":6,"window_size":4},
      "steps":[{"append":12},{"rollback":3}]})");
  EXPECT_EQ(judge_fresh(*healthy, scenario, *find_property("target.answers")).verdict,
            Verdict::passed);
}

TEST(Answers, OtherPropertiesSkipABrokenRunAndSayWhy) {
  Target target(Manner::dies);
  const auto scenario = model::parse_scenario(
      R"({"schema":1,"operator":"gqa","head_size":8,"steps":[{"append":2}]})");
  const auto judgement = judge_fresh(target, scenario, *find_property("values.within_bound"));
  EXPECT_EQ(judgement.verdict, Verdict::skipped);
  EXPECT_NE(judgement.text.find("broke off"), std::string::npos);
}

}  // namespace
}  // namespace kvcheck::properties
