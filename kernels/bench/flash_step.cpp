// Timed steps of cpu-flash without a session: output and cache are the caller's buffers, as a
// runtime would have them.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "kernels/bench/timed_step.h"
#include "kernels/cpu/element.h"
#include "kernels/cpu/flash/dot_kernels.h"
#include "kernels/cpu/flash/flash_engine.h"
#include "kernels/cpu/new_rows.h"
#include "kernels/cpu/request_check.h"

namespace kvcheck::kernels::bench {
namespace {

SessionConfig checked_config(const Capabilities& can, const Problem& problem, int threads) {
  const SessionConfig config = session_config(problem, threads);
  auto reason = check_config(config);
  if (!reason) reason = check_claims(can, config);
  if (reason) throw NotTimed(fmt::format("the session is refused: {}", *reason));
  return config;
}

class FlashStep : public TimedStep {
 public:
  FlashStep(const Capabilities& can, const Problem& problem, const OwnOptions& options)
      : problem_(problem),
        config_(checked_config(can, problem, options.threads)),
        operands_(config_, false),
        engine_(config_, can.name == "cpu-flash-dot" ? flash::dot_kernels() : nullptr,
                options.share_group) {}

  std::int64_t cache_bytes() const override { return engine_.cache().cache_bytes(); }
  std::int64_t scratch_bytes() const override {
    return engine_.scratch_bytes() + operands_.scratch_bytes();
  }

  std::vector<double> output(std::int64_t query) override {
    const auto row = static_cast<std::size_t>(problem_.query_heads * problem_.head_size);
    const std::size_t width = element_bytes(config_.element_type);
    std::vector<double> found;
    found.reserve(row);
    for (std::size_t i = 0; i < row; ++i) {
      const std::size_t at = static_cast<std::size_t>(query) * row + i;
      found.push_back(decode_element(config_.element_type, first_.data() + at * width));
    }
    return found;
  }

 protected:
  /// Rotary, quantising and the like are part of a step, as they are in the operator.
  void step(const StepRequest& request) {
    const std::int64_t queries = request.queries.front();
    operands_.prepare(request, engine_.cache().lengths());
    flash::EngineStep step;
    step.tokens = request.tokens;
    step.queries = request.queries;
    step.rows = operands_.rows();
    step.query = operands_.query_rows();
    step.query_type = flash::storage_of(operands_.query_type());
    output_.resize(static_cast<std::size_t>(queries * config_.query_heads * config_.head_size) *
                   element_bytes(config_.element_type));
    step.output = output_.data();
    step.output_type = flash::storage_of(config_.element_type);
    engine_.step(step);
  }

  void load(std::int64_t tokens) {
    const LoadRequest request = load_request(problem_, tokens);
    if (auto reason = check_load(config_, request)) {
      throw NotTimed(fmt::format("the cache's content is refused: {}", *reason));
    }
    engine_.cache().load(request);
  }

  void rollback() {
    const std::int64_t tokens[] = {problem_.tokens()};
    if (auto reason = engine_.cache().why_not_rollback(tokens)) {
      throw NotTimed(fmt::format("a rollback is refused: {}", *reason));
    }
    engine_.cache().rollback(tokens);
  }

  /// The output of the last step is the one that is looked at.
  void keep_output() { first_ = output_; }

  Problem problem_;
  SessionConfig config_;

 private:
  StepRows<float> operands_;
  flash::FlashEngine engine_;
  std::vector<std::byte> output_, first_;
};

/// The newest tokens again and again; they are dropped between the runs.
class FullCache final : public FlashStep {
 public:
  FullCache(const Capabilities& can, const Problem& problem, const OwnOptions& options)
      : FlashStep(can, problem, options) {
    const std::int64_t past = problem.length - problem.tokens();
    if (past > 0) load(past);
    request_ = step_request(problem, past, problem.length);
    run();
    keep_output();
  }
  void prepare() override { rollback(); }
  void run() override { step(request_); }

 private:
  StepRequest request_;
};

/// A whole cycle of the layout, so that its moves count with their share.
class WindowedCache final : public FlashStep {
 public:
  WindowedCache(const Capabilities& can, const Problem& problem, const OwnOptions& options)
      : FlashStep(can, problem, options) {
    const std::int64_t prompt = std::min(problem.capacity, problem.length - 1);
    step(step_request(problem, 0, prompt));
    for (std::int64_t token = prompt; token < problem.length; ++token) {
      request_ = step_request(problem, token, token + 1);
      step(request_);
    }
    keep_output();
  }
  void run() override {
    for (std::int64_t i = 0; i < problem_.cycle(); ++i) step(request_);
  }
  std::int64_t steps() const override { return problem_.cycle(); }

 private:
  StepRequest request_;
};

}  // namespace

std::unique_ptr<TimedStep> make_flash_step(const Capabilities& can, const Problem& problem,
                                           const OwnOptions& options) {
  if (problem.operation == "windowed") {
    return std::make_unique<WindowedCache>(can, problem, options);
  }
  return std::make_unique<FullCache>(can, problem, options);
}

}  // namespace kvcheck::kernels::bench
