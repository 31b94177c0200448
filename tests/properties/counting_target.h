// A target that counts the sessions that were opened: the runs of a case.
#pragma once

#include <memory>
#include <utility>

#include "kernels/target.h"

namespace kvcheck::properties {

class CountingTarget final : public kernels::Target {
 public:
  explicit CountingTarget(std::unique_ptr<kernels::Target> inner) : inner_(std::move(inner)) {}
  const kernels::Capabilities& capabilities() const override { return inner_->capabilities(); }
  kernels::Answer<std::unique_ptr<kernels::Session>> open(
      const kernels::SessionConfig& config) override {
    ++opened;
    return inner_->open(config);
  }
  int opened = 0;

 private:
  std::unique_ptr<kernels::Target> inner_;
};

}  // namespace kvcheck::properties
