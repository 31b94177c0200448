// What `kvcheck serve` is to the tool, for tests: served_stand_in serve NAME, NAME an own target or
// one of the stand-ins below, which break in one way each.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <variant>

#include <signal.h>

#include "kernels/process/serve.h"
#include "kernels/registry.h"
#include "tests/properties/forwarding_session.h"

namespace kvcheck::kernels {
namespace {

/// cpu-naive whose steps with a poison of 1 break as the name says.
class Breaking final : public Target {
 public:
  explicit Breaking(std::string how)
      : how_(std::move(how)),
        healthy_(std::get<std::unique_ptr<Target>>(make_own_target("cpu-naive"))) {}

  const Capabilities& capabilities() const override { return healthy_->capabilities(); }

  Answer<std::unique_ptr<Session>> open(const SessionConfig& config) override {
    auto answer = healthy_->open(config);
    if (auto* session = std::get_if<std::unique_ptr<Session>>(&answer)) {
      return std::make_unique<BreakingSession>(how_, std::move(*session));
    }
    return answer;
  }

 private:
  class BreakingSession final : public properties::ForwardingSession {
   public:
    BreakingSession(std::string how, std::unique_ptr<Session> healthy)
        : ForwardingSession(std::move(healthy)), how_(std::move(how)) {}

    Answer<StepResult> step(const StepRequest& request) override {
      if (request.poison && request.poison->value == 1) {
        if (auto failure = broken()) return std::move(*failure);
      }
      return ForwardingSession::step(request);
    }

   private:
    std::optional<Failure> broken() const {
      if (how_ == "prints") {
        std::printf("printed\n");
        std::fflush(stdout);
        std::cout << "streamed" << std::endl;
        return std::nullopt;
      }
      if (how_ == "dies") {
        std::fprintf(stderr, "the device is gone\n");
        std::_Exit(3);
      }
      if (how_ == "is_killed") ::raise(SIGKILL);
      if (how_ == "hangs") std::this_thread::sleep_for(std::chrono::hours(1));
      if (how_ == "throws") throw std::runtime_error("no such kernel");
      if (how_ == "loses_context") {
        return Failure{Failure::Kind::crash, "an illegal memory access was encountered"};
      }
      return Failure{Failure::Kind::defect, "data race at decode.cuh:7"};
    }

    std::string how_;
  };

  std::string how_;
  std::unique_ptr<Target> healthy_;
};

int run(const std::string& name) {
  std::printf("printed before\n");
  const FrameStreams streams = take_standard_streams();
  auto made = make_own_target(name);
  if (auto* target = std::get_if<std::unique_ptr<Target>>(&made)) return serve(**target, streams);
  Breaking breaking(name);
  return serve(breaking, streams);
}

}  // namespace
}  // namespace kvcheck::kernels

int main(int count, char** arguments) {
  if (count != 3 || std::string(arguments[1]) != "serve") return EXIT_FAILURE;
  return kvcheck::kernels::run(arguments[2]);
}
