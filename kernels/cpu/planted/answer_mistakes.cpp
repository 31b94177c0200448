// Faults in what a target takes, declines and hands out.
#include "kernels/cpu/planted/answer_mistakes.h"

#include <algorithm>
#include <utility>

#include "kernels/cpu/element.h"

namespace kvcheck::kernels {
namespace {

std::int64_t largest(const std::vector<std::int64_t>& numbers) {
  return numbers.empty() ? 0 : *std::max_element(numbers.begin(), numbers.end());
}

bool negative_or_missing(const SessionConfig& config, const std::vector<std::int64_t>& counts) {
  return static_cast<std::int64_t>(counts.size()) != config.batch ||
         std::any_of(counts.begin(), counts.end(), [](std::int64_t n) { return n < 0; });
}

class MistakenSession final : public Session {
 public:
  /// `rounds`: to bf16, whatever the outputs are.
  MistakenSession(Fault fault, const SessionConfig& config, bool rounds,
                  std::unique_ptr<Session> kernel)
      : fault_(fault),
        config_(config),
        rounds_(rounds),
        lengths_(static_cast<std::size_t>(config.batch), 0),
        kernel_(std::move(kernel)) {}

  Answer<StepResult> step(const StepRequest& request) override {
    if (const char* reason = why_not_step(request)) return Refusal{reason};
    if (fault_ == Fault::breaks_at_multiples_of_eight && breaks(request)) {
      return Failure{Failure::Kind::crash, "rows are not aligned"};
    }
    Answer<StepResult> answer = kernel_->step(request);
    if (std::holds_alternative<Refusal>(answer)) return refused(request, std::move(answer));
    auto* const result = std::get_if<StepResult>(&answer);
    if (result == nullptr) return answer;
    for (std::size_t b = 0; b < lengths_.size(); ++b) lengths_[b] += request.tokens[b];
    if (fault_ == Fault::intermediate_of_last_step && result->qk) {
      const bool fits = last_qk_ && last_qk_->shape == result->qk->shape;
      Tensor now = *result->qk;
      if (fits) result->qk = last_qk_;
      last_qk_ = std::move(now);
    }
    if (result->output) distort_output(result->qk, *result->output);
    return answer;
  }

  Answer<std::monostate> rollback(std::span<const std::int64_t> tokens) override {
    if (const char* reason = why_not_rollback(tokens)) return Refusal{reason};
    auto answer = kernel_->rollback(tokens);
    if (std::holds_alternative<std::monostate>(answer)) {
      for (std::size_t b = 0; b < lengths_.size(); ++b) lengths_[b] -= tokens[b];
    } else if (fault_ == Fault::refused_rollback_half_done) {
      drop_first_entry(tokens);
    }
    return answer;
  }

  Answer<std::monostate> load(const LoadRequest& request) override {
    auto answer = kernel_->load(request);
    if (std::holds_alternative<std::monostate>(answer)) lengths_ = request.lengths;
    return answer;
  }

  Answer<CacheRows> present() override { return kernel_->present(); }

 private:
  const char* why_not_step(const StepRequest& request) const {
    if (request.tokens.size() != lengths_.size()) return nullptr;
    const bool full_buffer = config_.layout == "full" && config_.op == "gqa";
    const bool idle = std::count(request.tokens.begin(), request.tokens.end(), 0) > 0 &&
                      largest(request.tokens) > 0;
    if (fault_ == Fault::idle_entry_refused && idle) return "tokens: every entry must bring some";
    for (std::size_t b = 0; b < lengths_.size(); ++b) {
      const bool fills =
          request.tokens[b] > 0 && lengths_[b] + request.tokens[b] == config_.capacity;
      if (fault_ == Fault::last_row_refused && full_buffer && fills) {
        return "tokens: must leave a row of the buffer";
      }
    }
    const bool longer = config_.layout == "block" && largest(request.tokens) > config_.capacity;
    if (fault_ == Fault::prompt_above_capacity_refused && longer) {
      return "tokens: more than the buffer holds";
    }
    return nullptr;
  }

  void distort_output(const std::optional<Tensor>& qk, Tensor& output) const {
    const std::int64_t count = output.elements();
    const auto bytes = static_cast<std::int64_t>(element_bytes(output.type));
    if (fault_ == Fault::intermediate_over_output && qk && qk->elements() > 0 && count > 0) {
      encode_element(output.type, decode_element(qk->type, qk->bytes.data()), output.bytes.data());
    }
    if (!rounds_ && !(fault_ == Fault::output_rounded_beside_intermediate && qk)) return;
    for (std::int64_t i = 0; i < count; ++i) {
      std::byte* const at = output.bytes.data() + i * bytes;
      std::byte narrow[2];
      encode_element(ElementType::bf16, decode_element(output.type, at), narrow);
      encode_element(output.type, decode_element(ElementType::bf16, narrow), at);
    }
  }

  bool breaks(const StepRequest& request) const {
    return request.mask && !request.mask->shape.empty() && request.mask->shape.back() % 8 == 0 &&
           largest(request.queries) > 0;
  }

  /// Nothing is left of what the right kernel declined, but for a planted fault.
  Answer<StepResult> refused(const StepRequest& request, Answer<StepResult> answer) {
    if (negative_or_missing(config_, request.tokens)) return answer;
    const std::int64_t most = largest(request.tokens);
    bool overfull = config_.layout == "full" && config_.op == "gqa" && most <= config_.capacity;
    bool beyond = false;
    for (std::size_t b = 0; b < lengths_.size(); ++b) {
      beyond |= lengths_[b] + request.tokens[b] > config_.capacity;
      overfull &= request.queries == request.tokens;
    }
    if (fault_ == Fault::overfull_step_taken && overfull && beyond) {
      StepResult result;
      result.output = Tensor::zeros(config_.element_type, {config_.batch, most, config_.query_heads,
                                                           config_.value_head_size});
      return result;
    }
    if (fault_ == Fault::refused_step_drops_row) drop_one();
    return answer;
  }

  void drop_one() {
    if (*std::min_element(lengths_.begin(), lengths_.end()) == 0) return;
    const std::vector<std::int64_t> one(lengths_.size(), 1);
    if (!std::holds_alternative<std::monostate>(kernel_->rollback(one))) return;
    for (std::int64_t& length : lengths_) --length;
  }

  const char* why_not_rollback(std::span<const std::int64_t> tokens) const {
    if (tokens.size() != lengths_.size()) return nullptr;
    for (std::size_t b = 0; b < lengths_.size(); ++b) {
      const bool evicted = config_.layout != "full" && lengths_[b] > config_.capacity;
      if (fault_ == Fault::rollback_after_eviction_refused && evicted && tokens[b] > 0) {
        return "rollback: rows were evicted";
      }
      if (fault_ == Fault::rollback_to_empty_refused && tokens[b] > 0 && tokens[b] == lengths_[b]) {
        return "rollback: must leave a token";
      }
    }
    return nullptr;
  }

  /// Takes the entries one by one, and finds the one that declines too late.
  void drop_first_entry(std::span<const std::int64_t> tokens) {
    if (tokens.size() != lengths_.size() || tokens.size() < 2) return;
    std::vector<std::int64_t> first(lengths_.size(), 0);
    first[0] = tokens[0];
    if (!std::holds_alternative<std::monostate>(kernel_->rollback(first))) return;
    lengths_[0] -= tokens[0];
  }

  Fault fault_;
  SessionConfig config_;
  bool rounds_;
  std::vector<std::int64_t> lengths_;
  std::unique_ptr<Session> kernel_;
  std::optional<Tensor> last_qk_;
};

class MistakenTarget final : public Target {
 public:
  MistakenTarget(Fault fault, std::unique_ptr<Target> kernel)
      : fault_(fault), kernel_(std::move(kernel)) {}

  const Capabilities& capabilities() const override { return kernel_->capabilities(); }

  Answer<std::unique_ptr<Session>> open(const SessionConfig& config) override {
    auto answer = kernel_->open(config);
    auto* const session = std::get_if<std::unique_ptr<Session>>(&answer);
    if (session == nullptr) return answer;
    const bool roomy = config.layout == "block" && config.capacity > config.window_size;
    if (fault_ == Fault::capacity_above_window_refused && roomy) {
      return Refusal{"capacity: must be the window_size"};
    }
    const bool rounds = fault_ == Fault::output_rounded_every_other_session && opened_++ % 2 == 1;
    return std::make_unique<MistakenSession>(fault_, config, rounds, std::move(*session));
  }

  Answer<CallResult> call(const OperatorCall& call) override { return kernel_->call(call); }

 private:
  Fault fault_;
  std::unique_ptr<Target> kernel_;
  std::int64_t opened_ = 0;
};

}  // namespace

std::unique_ptr<Target> distort_answers(Fault fault, std::unique_ptr<Target> kernel) {
  constexpr Fault kOfAnswers[] = {Fault::last_row_refused,
                                  Fault::prompt_above_capacity_refused,
                                  Fault::idle_entry_refused,
                                  Fault::overfull_step_taken,
                                  Fault::refused_step_drops_row,
                                  Fault::rollback_after_eviction_refused,
                                  Fault::rollback_to_empty_refused,
                                  Fault::refused_rollback_half_done,
                                  Fault::capacity_above_window_refused,
                                  Fault::breaks_at_multiples_of_eight,
                                  Fault::intermediate_of_last_step,
                                  Fault::intermediate_over_output,
                                  Fault::output_rounded_beside_intermediate,
                                  Fault::output_rounded_every_other_session};
  const bool here =
      std::find(std::begin(kOfAnswers), std::end(kOfAnswers), fault) != std::end(kOfAnswers);
  if (!here) return kernel;
  return std::make_unique<MistakenTarget>(fault, std::move(kernel));
}

}  // namespace kvcheck::kernels
