// A session whose calls go on to another one; a test overrides what it changes.
#pragma once

#include <memory>
#include <span>
#include <utility>

#include "kernels/target.h"

namespace kvcheck::properties {

class ForwardingSession : public kernels::Session {
 public:
  explicit ForwardingSession(std::unique_ptr<kernels::Session> inner) : inner_(std::move(inner)) {}

  kernels::Answer<kernels::StepResult> step(const kernels::StepRequest& request) override {
    return inner_->step(request);
  }
  kernels::Answer<std::monostate> rollback(std::span<const std::int64_t> tokens) override {
    return inner_->rollback(tokens);
  }
  kernels::Answer<std::monostate> load(const kernels::LoadRequest& request) override {
    return inner_->load(request);
  }
  kernels::Answer<kernels::CacheRows> present() override { return inner_->present(); }

 private:
  std::unique_ptr<kernels::Session> inner_;
};

}  // namespace kvcheck::properties
