// A target that counts the sessions that were opened, the runs of a case, and their rollbacks.
#pragma once

#include <memory>
#include <utility>

#include "kernels/target.h"
#include "tests/properties/forwarding_session.h"

namespace kvcheck::properties {

class CountingTarget final : public kernels::Target {
 public:
  explicit CountingTarget(std::unique_ptr<kernels::Target> inner) : inner_(std::move(inner)) {}
  const kernels::Capabilities& capabilities() const override { return inner_->capabilities(); }
  kernels::Answer<std::unique_ptr<kernels::Session>> open(
      const kernels::SessionConfig& config) override {
    ++opened;
    auto answer = inner_->open(config);
    if (auto* session = std::get_if<std::unique_ptr<kernels::Session>>(&answer)) {
      *session = std::make_unique<Counting>(std::move(*session), rollbacks);
    }
    return answer;
  }
  int opened = 0;
  int rollbacks = 0;

 private:
  class Counting final : public ForwardingSession {
   public:
    Counting(std::unique_ptr<kernels::Session> inner, int& rollbacks)
        : ForwardingSession(std::move(inner)), rollbacks_(rollbacks) {}
    kernels::Answer<std::monostate> rollback(std::span<const std::int64_t> tokens) override {
      ++rollbacks_;
      return ForwardingSession::rollback(tokens);
    }

   private:
    int& rollbacks_;
  };

  std::unique_ptr<kernels::Target> inner_;
};

}  // namespace kvcheck::properties
