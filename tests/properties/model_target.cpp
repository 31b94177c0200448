// The modelled target without a reading, whose answers the test changes.
#include "tests/properties/model_target.h"

#include "properties/audit/modelled_target.h"
#include "properties/told_target.h"

namespace kvcheck::properties {
namespace {

using kernels::Answer;

class MistakenSession final : public kernels::Session {
 public:
  MistakenSession(std::unique_ptr<kernels::Session> session, const model::Scenario& scenario,
                  Mistake mistake)
      : session_(std::move(session)), scenario_(scenario), mistake_(std::move(mistake)) {}

  Answer<kernels::StepResult> step(const kernels::StepRequest&) override {
    const auto& append = std::get<model::Append>(scenario_.steps[at_]);
    kernels::StepRequest with_rows;  // The model asks the scenario, not the request.
    with_rows.tokens = append.tokens;
    with_rows.queries = append.queries;
    with_rows.want_rows = true;
    auto answer = session_->step(with_rows);
    if (mistake_) mistake_(at_, std::get<kernels::StepResult>(answer));
    ++at_;
    return answer;
  }
  Answer<std::monostate> rollback(std::span<const std::int64_t> tokens) override {
    ++at_;
    return session_->rollback(tokens);
  }
  Answer<std::monostate> load(const kernels::LoadRequest& request) override {
    ++at_;
    return session_->load(request);
  }
  Answer<kernels::CacheRows> present() override { return session_->present(); }

 private:
  std::unique_ptr<kernels::Session> session_;
  model::Scenario scenario_;
  Mistake mistake_;
  std::size_t at_ = 0;
};

class ModelTarget final : public kernels::Target {
 public:
  ModelTarget(const model::Scenario& scenario, Mistake mistake)
      : scenario_(scenario),
        mistake_(std::move(mistake)),
        claims_(all_capabilities()),
        target_(make_modelled_target(nullptr)) {
    dynamic_cast<ToldTarget&>(*target_).tell(scenario);
  }
  const kernels::Capabilities& capabilities() const override { return claims_; }
  Answer<std::unique_ptr<kernels::Session>> open(const kernels::SessionConfig& config) override {
    auto opened = target_->open(config);
    return std::make_unique<MistakenSession>(
        std::move(std::get<std::unique_ptr<kernels::Session>>(opened)), scenario_, mistake_);
  }

 private:
  model::Scenario scenario_;
  Mistake mistake_;
  kernels::Capabilities claims_;
  std::unique_ptr<kernels::Target> target_;
};

}  // namespace

kernels::Capabilities all_capabilities() {
  kernels::Capabilities c = modelled_capabilities();
  for (const char* promise :
       {"separate_buffers", "split_bits", "window_bits", "capacity_bits", "threads_bits",
        "company_bits", "rollback_bits", "repeat_bits", "nan_safe"}) {
    c.features.erase(promise);
  }
  return c;
}

std::unique_ptr<kernels::Target> make_model_target(const model::Scenario& scenario,
                                                   Mistake mistake) {
  return std::make_unique<ModelTarget>(scenario, std::move(mistake));
}

}  // namespace kvcheck::properties
