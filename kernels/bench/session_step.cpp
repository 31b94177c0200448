// Timed steps through a target's session.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "kernels/bench/memory.h"
#include "kernels/bench/timed_step.h"
#include "kernels/cpu/element.h"

namespace kvcheck::kernels::bench {
namespace {

template <class T>
T accepted(Answer<T> answer, std::string_view what) {
  if (auto* refusal = std::get_if<Refusal>(&answer)) {
    throw NotTimed(fmt::format("{} is refused: {}", what, refusal->reason));
  }
  if (auto* failure = std::get_if<Failure>(&answer)) {
    throw NotTimed(fmt::format("{} broke: {}", what, failure->detail));
  }
  return std::get<T>(std::move(answer));
}

class SessionStep : public TimedStep {
 public:
  SessionStep(Target& target, const Problem& problem, const OwnOptions& options)
      : problem_(problem),
        session_(accepted(target.open(session_config(problem, options.threads)), "the session")) {}

  std::vector<double> output(std::int64_t query) override {
    const auto row = static_cast<std::size_t>(problem_.query_heads * problem_.head_size);
    std::vector<double> found;
    found.reserve(row);
    for (std::size_t i = 0; i < row; ++i) {
      const std::size_t at = static_cast<std::size_t>(query) * row + i;
      found.push_back(
          decode_element(output_.type, output_.bytes.data() + at * element_bytes(output_.type)));
    }
    return found;
  }

  /// Memory that the first step took beside the cache, its output included.
  std::int64_t scratch_bytes() const override { return scratch_; }

 protected:
  Tensor step(const StepRequest& request) {
    StepResult result = accepted(session_->step(request), "a step");
    if (!result.output) throw NotTimed("the target computes no outputs");
    return std::move(*result.output);
  }

  /// A step whose output is the one that is looked at, if it is the first.
  void timed_step(const StepRequest& request) {
    Tensor answer = step(request);
    if (output_.bytes.empty()) output_ = std::move(answer);
  }

  Problem problem_;
  std::unique_ptr<Session> session_;
  Tensor output_;
  std::int64_t scratch_ = 0;
};

/// The newest tokens again and again; they are dropped between the runs.
class FullCacheStep : public SessionStep {
 public:
  FullCacheStep(Target& target, const Problem& problem, const OwnOptions& options)
      : SessionStep(target, problem, options) {
    const std::int64_t past = problem.length - problem.tokens();
    if (past > 0) accepted(session_->load(load_request(problem, past)), "the cache's content");
    request_ = step_request(problem, past, problem.length);
    scratch_ = peak_growth([&] { run(); });
  }

  void prepare() override {
    const std::int64_t tokens[] = {problem_.tokens()};
    accepted(session_->rollback(tokens), "a rollback");
  }
  void run() override { timed_step(request_); }

 private:
  StepRequest request_;
};

/// A whole cycle of the layout, so that its moves count with their share.
class WindowedStep : public SessionStep {
 public:
  WindowedStep(Target& target, const Problem& problem, const OwnOptions& options)
      : SessionStep(target, problem, options) {
    const std::int64_t prompt = std::min(problem.capacity, problem.length - 1);
    step(step_request(problem, 0, prompt));
    for (std::int64_t token = prompt; token + 1 < problem.length; ++token) {
      step(step_request(problem, token, token + 1));
    }
    request_ = step_request(problem, problem.length - 1, problem.length);
    timed_step(request_);
  }

  void run() override {
    for (std::int64_t i = 0; i < problem_.cycle(); ++i) timed_step(request_);
  }
  std::int64_t steps() const override { return problem_.cycle(); }

 private:
  StepRequest request_;
};

}  // namespace

std::unique_ptr<TimedStep> make_session_step(Target& target, const Problem& problem,
                                             const OwnOptions& options) {
  if (problem.operation == "windowed") {
    return std::make_unique<WindowedStep>(target, problem, options);
  }
  return std::make_unique<FullCacheStep>(target, problem, options);
}

}  // namespace kvcheck::kernels::bench
