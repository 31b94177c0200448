// A wrap around cpu-naive.
#include "tests/properties/promise_breaker.h"

#include <algorithm>
#include <utility>

#include "kernels/cpu/naive/cpu_naive.h"

namespace kvcheck::properties {
namespace {

using kernels::Answer;

class Session final : public kernels::Session {
 public:
  /// `always`: what is known of the session breaks the promise from the start.
  Session(std::unique_ptr<kernels::Session> inner, std::optional<Promise> broken, bool always)
      : inner_(std::move(inner)), broken_(broken), flips_(always) {}

  Answer<kernels::StepResult> step(const kernels::StepRequest& request) override {
    auto answer = inner_->step(request);
    const bool several = *std::max_element(request.tokens.begin(), request.tokens.end()) > 1;
    bool flips = flips_ ||
                 (several && (broken_ == Promise::split || (broken_ == Promise::chunk && !first_)));
    if (broken_ == Promise::padding && request.tokens.back() < request.key.shape[1] &&
        request.key.bytes.back() == std::byte{0x7f}) {
      flips = true;
    }
    first_ = false;
    auto* result = std::get_if<kernels::StepResult>(&answer);
    if (result && flips && !result->output->bytes.empty()) {
      result->output->bytes[0] ^= std::byte{1};
    }
    return answer;
  }
  Answer<std::monostate> rollback(std::span<const std::int64_t> tokens) override {
    auto answer = inner_->rollback(tokens);
    flips_ =
        flips_ || (broken_ == Promise::rollback && std::holds_alternative<std::monostate>(answer));
    return answer;
  }
  Answer<std::monostate> load(const kernels::LoadRequest& request) override {
    first_ = false;
    return inner_->load(request);
  }
  Answer<kernels::CacheRows> present() override { return inner_->present(); }

 private:
  std::unique_ptr<kernels::Session> inner_;
  std::optional<Promise> broken_;
  bool flips_;
  bool first_ = true;
};

class Target final : public kernels::Target {
 public:
  Target(std::optional<Promise> broken, const std::string& unclaimed)
      : broken_(broken), inner_(kernels::make_cpu_naive()), capabilities_(inner_->capabilities()) {
    capabilities_.name = "promise_breaker";
    capabilities_.features.insert({"split_bits", "window_bits", "capacity_bits", "threads_bits",
                                   "isa_bits", "company_bits", "rollback_bits", "repeat_bits",
                                   "order_bits", "format_bits", "scaling_bits", "schedule_bits",
                                   "launches"});
    capabilities_.features.erase(unclaimed);
    capabilities_.isas = {"avx512", "avx2"};
  }

  const kernels::Capabilities& capabilities() const override { return capabilities_; }

  Answer<std::unique_ptr<kernels::Session>> open(const kernels::SessionConfig& config) override {
    const bool always = breaks(config);
    ++opened_;
    kernels::SessionConfig plain = config;
    plain.threads = 0;
    plain.isa.clear();
    plain.launch.reset();
    auto answer = inner_->open(plain);
    auto* opened = std::get_if<std::unique_ptr<kernels::Session>>(&answer);
    if (!opened) return answer;
    return std::make_unique<Session>(std::move(*opened), broken_, always);
  }

 private:
  bool breaks(const kernels::SessionConfig& config) const {
    if (!broken_) return false;
    switch (*broken_) {
      case Promise::window:
        return config.layout != "full";
      case Promise::capacity:
        return config.capacity % 2 == 1;
      case Promise::threads:
        return config.threads > 1;
      case Promise::isa:
        return config.isa == "avx2";
      case Promise::schedule:
        return config.launch && config.launch->order != "lockstep";
      case Promise::company:
        return config.batch > 1;
      case Promise::repeat:
        return opened_ % 2 == 1;
      case Promise::order:
        return true;
      case Promise::packed:
        return config.packed_qkv;
      case Promise::rank:
        return config.input_rank == 3;
      case Promise::separate:
        return !config.share_buffers;
      case Promise::intermediate:
        return config.qk_output != "none";
      case Promise::scaling:
        return config.scale != 0 &&
               config.scale * config.scale * static_cast<double>(config.head_size) < 0.25;
      case Promise::combined:
        return config.threads > 0 && !config.isa.empty();
      case Promise::split:
      case Promise::chunk:
      case Promise::rollback:
      case Promise::padding:
        break;
    }
    return false;
  }

  std::optional<Promise> broken_;
  std::unique_ptr<kernels::Target> inner_;
  kernels::Capabilities capabilities_;
  std::int64_t opened_ = 0;
};

}  // namespace

std::unique_ptr<kernels::Target> make_promise_breaker(std::optional<Promise> broken,
                                                      const std::string& unclaimed) {
  return std::make_unique<Target>(broken, unclaimed);
}

}  // namespace kvcheck::properties
