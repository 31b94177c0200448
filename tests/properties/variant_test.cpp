// A variant whose run breaks is a failure of the property that runs it; one that is refused is not.
#include "properties/variant.h"

#include <gtest/gtest.h>

#include "kernels/cpu/naive/cpu_naive.h"
#include "model/scenario_json.h"
#include "properties/catalog.h"
#include "properties/finding.h"
#include "tests/properties/forwarding_session.h"

namespace kvcheck::properties {
namespace {

/// cpu-naive that claims two instruction sets and answers steps with `answer` where one is asked
/// for, as in variants alone.
class AnswersVariants final : public kernels::Target {
 public:
  using Step = kernels::Answer<kernels::StepResult>;

  explicit AnswersVariants(Step answer)
      : answer_(std::move(answer)),
        inner_(kernels::make_cpu_naive()),
        capabilities_(inner_->capabilities()) {
    capabilities_.features.insert("isa_bits");
    capabilities_.isas = {"avx512", "avx2"};
  }

  const kernels::Capabilities& capabilities() const override { return capabilities_; }

  kernels::Answer<std::unique_ptr<kernels::Session>> open(
      const kernels::SessionConfig& config) override {
    kernels::SessionConfig plain = config;
    plain.isa.clear();
    auto opened = inner_->open(plain);
    auto* session = std::get_if<std::unique_ptr<kernels::Session>>(&opened);
    if (session == nullptr || config.isa.empty()) return opened;
    return std::make_unique<Stub>(std::move(*session), answer_);
  }

 private:
  class Stub final : public ForwardingSession {
   public:
    Stub(std::unique_ptr<kernels::Session> inner, const Step& answer)
        : ForwardingSession(std::move(inner)), answer_(answer) {}
    Step step(const kernels::StepRequest&) override { return answer_; }

   private:
    const Step& answer_;
  };

  Step answer_;
  std::unique_ptr<kernels::Target> inner_;
  kernels::Capabilities capabilities_;
};

Judgement judged(AnswersVariants::Step answer) {
  AnswersVariants target(std::move(answer));
  const auto scenario =
      model::parse_scenario(R"({"schema":1,"operator":"gqa","steps":[{"append":3}]})");
  return judge_fresh(target, scenario, *find_property("target.instruction_set"));
}

struct Broken {
  kernels::Failure::Kind how;
  Kind kind;
};

TEST(Variant, ThatBreaksFailsAsWhatItBrokeAs) {
  using enum kernels::Failure::Kind;
  for (const auto& [how, kind] : {Broken{crash, Kind::crash}, Broken{hang, Kind::hang},
                                  Broken{nonsense, Kind::nonsense}, Broken{defect, Kind::defect}}) {
    const Judgement judgement = judged(kernels::Failure{how, "what it said"});
    EXPECT_EQ(judgement.verdict, Verdict::failed);
    EXPECT_EQ(judgement.kind, kind);
    EXPECT_NE(judgement.text.find("instruction set"), std::string::npos) << judgement.text;
    EXPECT_NE(judgement.text.find("what it said"), std::string::npos) << judgement.text;
  }
}

TEST(Variant, ThatIsRefusedIsSkippedWithTheReason) {
  const Judgement judgement = judged(kernels::Refusal{"not today"});
  EXPECT_EQ(judgement.verdict, Verdict::skipped);
  EXPECT_NE(judgement.text.find("not today"), std::string::npos) << judgement.text;
}

}  // namespace
}  // namespace kvcheck::properties
