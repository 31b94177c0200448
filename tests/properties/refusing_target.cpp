// A wrap around cpu-naive that spoils refusals.
#include "tests/properties/refusing_target.h"

#include <utility>
#include <vector>

#include "kernels/cpu/naive/cpu_naive.h"

namespace kvcheck::properties {
namespace {

using kernels::Answer;

template <class T>
bool refused(const Answer<T>& answer) {
  return std::holds_alternative<kernels::Refusal>(answer);
}

class Session final : public kernels::Session {
 public:
  Session(kernels::Target& target, kernels::SessionConfig config,
          std::unique_ptr<kernels::Session> inner, BadRefusal habit)
      : target_(target), config_(std::move(config)), inner_(std::move(inner)), habit_(habit) {}

  Answer<kernels::StepResult> step(const kernels::StepRequest& request) override {
    auto answer = inner_->step(request);
    if (refused(answer) && habit_ == BadRefusal::drops_a_token) drop();
    return answer;
  }
  Answer<std::monostate> rollback(std::span<const std::int64_t> tokens) override {
    auto answer = inner_->rollback(tokens);
    if (!refused(answer)) return answer;
    if (habit_ == BadRefusal::loses_cache) {
      auto fresh = target_.open(config_);
      inner_ = std::move(std::get<std::unique_ptr<kernels::Session>>(fresh));
    }
    if (habit_ == BadRefusal::accepts_rollback) return std::monostate{};
    return answer;
  }
  Answer<std::monostate> load(const kernels::LoadRequest& request) override {
    auto answer = inner_->load(request);
    if (refused(answer) && habit_ == BadRefusal::drops_a_token) drop();
    if (refused(answer) && habit_ == BadRefusal::accepts_load) return std::monostate{};
    return answer;
  }
  Answer<kernels::CacheRows> present() override { return inner_->present(); }

 private:
  void drop() {
    const std::vector<std::int64_t> one(static_cast<std::size_t>(config_.batch), 1);
    inner_->rollback(one);
  }

  kernels::Target& target_;
  kernels::SessionConfig config_;
  std::unique_ptr<kernels::Session> inner_;
  BadRefusal habit_;
};

class Target final : public kernels::Target {
 public:
  explicit Target(BadRefusal habit) : inner_(kernels::make_cpu_naive()), habit_(habit) {}

  const kernels::Capabilities& capabilities() const override { return inner_->capabilities(); }

  Answer<std::unique_ptr<kernels::Session>> open(const kernels::SessionConfig& config) override {
    auto answer = inner_->open(config);
    auto* opened = std::get_if<std::unique_ptr<kernels::Session>>(&answer);
    if (!opened) return answer;
    return std::make_unique<Session>(*inner_, config, std::move(*opened), habit_);
  }

 private:
  std::unique_ptr<kernels::Target> inner_;
  BadRefusal habit_;
};

}  // namespace

std::unique_ptr<kernels::Target> make_refusing_target(BadRefusal habit) {
  return std::make_unique<Target>(habit);
}

}  // namespace kvcheck::properties
