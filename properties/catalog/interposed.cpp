// A target that hands requests on.
#include "properties/catalog/interposed.h"

#include <memory>
#include <utility>

#include "model/element_type.h"
#include "properties/convert.h"
#include "properties/told_target.h"

namespace kvcheck::properties {
namespace {

using kernels::Answer;

class Session final : public kernels::Session {
 public:
  Session(std::unique_ptr<kernels::Session> inner, const Interposer& interposer)
      : inner_(std::move(inner)), interposer_(interposer) {}

  Answer<kernels::StepResult> step(const kernels::StepRequest& request) override {
    const std::size_t step = begin();
    if (!interposer_.append) return inner_->step(request);
    kernels::StepRequest changed = request;
    interposer_.append(step, changed);
    return inner_->step(changed);
  }
  Answer<std::monostate> rollback(std::span<const std::int64_t> tokens) override {
    begin();
    return inner_->rollback(tokens);
  }
  Answer<std::monostate> load(const kernels::LoadRequest& request) override {
    const std::size_t step = begin();
    if (!interposer_.load) return inner_->load(request);
    kernels::LoadRequest changed = request;
    interposer_.load(step, changed);
    return inner_->load(changed);
  }
  Answer<kernels::CacheRows> present() override { return inner_->present(); }

 private:
  std::size_t begin() {
    if (interposer_.before) interposer_.before(steps_, *inner_);
    return steps_++;
  }

  std::unique_ptr<kernels::Session> inner_;
  const Interposer& interposer_;
  std::size_t steps_ = 0;
};

class Target final : public kernels::Target {
 public:
  Target(kernels::Target& inner, const Interposer& interposer)
      : inner_(inner), interposer_(interposer) {}

  const kernels::Capabilities& capabilities() const override { return inner_.capabilities(); }

  Answer<std::unique_ptr<kernels::Session>> open(const kernels::SessionConfig& config) override {
    kernels::SessionConfig changed = config;
    if (interposer_.config) interposer_.config(changed);
    auto answer = inner_.open(changed);
    auto* opened = std::get_if<std::unique_ptr<kernels::Session>>(&answer);
    if (!opened) return answer;
    return std::make_unique<Session>(std::move(*opened), interposer_);
  }

 private:
  kernels::Target& inner_;
  const Interposer& interposer_;
};

}  // namespace

Execution execute_interposed(Case& c, const model::Scenario& scenario,
                             const model::Timeline& timeline, const model::Fill& fill,
                             const Interposer& interposer, const ExecuteOptions& options) {
  if (dynamic_cast<ToldTarget*>(&c.target()) != nullptr) {
    Execution none;
    none.steps.resize(scenario.steps.size());
    none.open.status = StepAnswer::Status::refused;
    none.open.reason = "the target answers from the scenario, whatever the requests say";
    return none;
  }
  Target target(c.target(), interposer);
  return execute(target, scenario, timeline, fill, options);
}

Execution execute_interposed(Case& c, const Interposer& interposer, const ExecuteOptions& options) {
  return execute_interposed(c, c.scenario(), c.timeline(), c.fill(), interposer, options);
}

void put_row(kernels::Tensor& tensor, std::int64_t row, std::span<const double> values) {
  const auto type = to_model(tensor.type);
  const std::size_t width = model::element_bytes(type);
  std::byte* where = tensor.bytes.data() + static_cast<std::size_t>(row) * values.size() * width;
  for (const double value : values) {
    model::store_element(type, value, where);
    where += width;
  }
}

}  // namespace kvcheck::properties
