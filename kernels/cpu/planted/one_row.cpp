// A mistake made in single rows of a single head: two sessions side by side.
#include "kernels/cpu/planted/one_row.h"

#include <algorithm>
#include <string>
#include <utility>

namespace kvcheck::kernels {
namespace {

/// Positions before the first key are below 0.
bool is_mistaken(std::int64_t position) {
  const std::int64_t place = position % kMistakenPeriod;
  return (place + kMistakenPeriod) % kMistakenPeriod == kMistakenPosition;
}

/// Copies one run of elements from one tensor to another of the same shape.
void take(const Tensor& from, std::int64_t first, std::int64_t count, Tensor& to) {
  const auto bytes = static_cast<std::int64_t>(element_bytes(to.type));
  std::copy_n(from.bytes.begin() + first * bytes, count * bytes, to.bytes.begin() + first * bytes);
}

bool alike(const std::optional<Tensor>& a, const std::optional<Tensor>& b) {
  return a && b && a->type == b->type && a->shape == b->shape;
}

class OneRowSession final : public Session {
 public:
  OneRowSession(const SessionConfig& config, std::unique_ptr<Session> healthy,
                std::unique_ptr<Session> mistaken)
      : from_end_(config.nonpad_kv_seqlen),
        lengths_(static_cast<std::size_t>(config.batch), 0),
        healthy_(std::move(healthy)),
        mistaken_(std::move(mistaken)) {}

  Answer<StepResult> step(const StepRequest& request) override {
    Answer<StepResult> answer = healthy_->step(request);
    auto* const right = std::get_if<StepResult>(&answer);
    if (right == nullptr) return answer;
    if (mistaken_ != nullptr) {
      const Answer<StepResult> other = mistaken_->step(request);
      if (const auto* wrong = std::get_if<StepResult>(&other)) {
        blend(request, *wrong, *right);
      } else {
        mistaken_ = nullptr;
      }
    }
    for (std::size_t b = 0; b < lengths_.size(); ++b) lengths_[b] += request.tokens[b];
    return answer;
  }

  Answer<std::monostate> rollback(std::span<const std::int64_t> tokens) override {
    auto answer = healthy_->rollback(tokens);
    if (!std::holds_alternative<std::monostate>(answer)) return answer;
    keep_if(mistaken_ != nullptr &&
            std::holds_alternative<std::monostate>(mistaken_->rollback(tokens)));
    for (std::size_t b = 0; b < lengths_.size(); ++b) lengths_[b] -= tokens[b];
    return answer;
  }

  Answer<std::monostate> load(const LoadRequest& request) override {
    auto answer = healthy_->load(request);
    if (!std::holds_alternative<std::monostate>(answer)) return answer;
    keep_if(mistaken_ != nullptr &&
            std::holds_alternative<std::monostate>(mistaken_->load(request)));
    lengths_ = request.lengths;
    return answer;
  }

  Answer<CacheRows> present() override {
    Answer<CacheRows> answer = healthy_->present();
    auto* const right = std::get_if<CacheRows>(&answer);
    if (right == nullptr || mistaken_ == nullptr) return answer;
    const Answer<CacheRows> other = mistaken_->present();
    if (const auto* wrong = std::get_if<CacheRows>(&other)) blend_rows(*wrong, *right);
    return answer;
  }

 private:
  void keep_if(bool keeps) {
    if (!keeps) mistaken_ = nullptr;
  }

  void blend(const StepRequest& request, const StepResult& wrong, StepResult& right) const {
    const bool alone = std::all_of(request.tokens.begin(), request.tokens.end(),
                                   [](std::int64_t tokens) { return tokens == 0; });
    for (std::size_t b = 0; b < lengths_.size(); ++b) {
      const std::int64_t length = lengths_[b] + request.tokens[b];
      const std::int64_t first = from_end_ || alone ? length - request.queries[b] : lengths_[b];
      for (std::int64_t query = 0; query < request.queries[b]; ++query) {
        if (is_mistaken(first + query)) blend_query(b, query, wrong, right);
      }
    }
    if (wrong.rows && right.rows) blend_rows(*wrong.rows, *right.rows);
  }

  static void blend_query(std::size_t b, std::int64_t query, const StepResult& wrong,
                          StepResult& right) {
    const auto entry = static_cast<std::int64_t>(b);
    if (alike(wrong.output, right.output)) {
      const auto& shape = right.output->shape;  // [B,S,Nq,Hv]
      const std::int64_t row = (entry * shape[1] + query) * shape[2] + shape[2] / 2;
      take(*wrong.output, row * shape[3], shape[3], *right.output);
    }
    if (alike(wrong.qk, right.qk)) {
      const auto& shape = right.qk->shape;  // [B,Nq,S,T]
      const std::int64_t row = (entry * shape[1] + shape[1] / 2) * shape[2] + query;
      take(*wrong.qk, row * shape[3], shape[3], *right.qk);
    }
  }

  static void blend_rows(const CacheRows& wrong, CacheRows& right) {
    const auto blend_tensor = [](const Tensor& from, Tensor& to) {
      if (from.shape != to.shape) return;
      const auto& shape = to.shape;  // [B,Nk,R,H]
      for (std::int64_t entry = 0; entry < shape[0]; ++entry) {
        const std::int64_t first = (entry * shape[1] + shape[1] / 2) * shape[2];
        for (std::int64_t row = kMistakenPosition; row < shape[2]; row += kMistakenPeriod) {
          take(from, (first + row) * shape[3], shape[3], to);
        }
      }
    };
    blend_tensor(wrong.key, right.key);
    blend_tensor(wrong.value, right.value);
  }

  bool from_end_;
  std::vector<std::int64_t> lengths_;
  std::unique_ptr<Session> healthy_, mistaken_;  // mistaken_ is null once they have parted.
};

class OneRow final : public Target {
 public:
  OneRow(std::unique_ptr<Target> healthy, std::unique_ptr<Target> mistaken)
      : healthy_(std::move(healthy)),
        mistaken_(std::move(mistaken)),
        capabilities_(mistaken_->capabilities()) {
    capabilities_.name += "@row";
  }

  const Capabilities& capabilities() const override { return capabilities_; }

  Answer<std::unique_ptr<Session>> open(const SessionConfig& config) override {
    auto healthy = healthy_->open(config);
    auto* const right = std::get_if<std::unique_ptr<Session>>(&healthy);
    if (right == nullptr) return healthy;
    auto mistaken = mistaken_->open(config);
    auto* const wrong = std::get_if<std::unique_ptr<Session>>(&mistaken);
    if (wrong == nullptr) return healthy;
    return std::make_unique<OneRowSession>(config, std::move(*right), std::move(*wrong));
  }

  Answer<CallResult> call(const OperatorCall& call) override { return healthy_->call(call); }

 private:
  std::unique_ptr<Target> healthy_, mistaken_;
  Capabilities capabilities_;
};

}  // namespace

std::unique_ptr<Target> make_one_row(std::unique_ptr<Target> healthy,
                                     std::unique_ptr<Target> mistaken) {
  return std::make_unique<OneRow>(std::move(healthy), std::move(mistaken));
}

}  // namespace kvcheck::kernels
