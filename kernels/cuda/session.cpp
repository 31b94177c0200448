// A session on a machine.
#include "kernels/cuda/session.h"

#include <utility>

#include "kernels/cpu/claims.h"
#include "kernels/cpu/request_check.h"
#include "kernels/cuda/device_attention.h"
#include "kernels/cuda/device_cache.h"

namespace kvcheck::kernels::device {
namespace {

class DeviceSession final : public Session {
 public:
  DeviceSession(std::unique_ptr<Machine> machine, const SessionConfig& config)
      : machine_(std::move(machine)),
        config_(config),
        cache_(*machine_, config_),
        attention_(*machine_, config_, cache_) {}

  Answer<StepResult> step(const StepRequest& request) override {
    if (broke_) return *broke_;
    if (auto reason = check_step(config_, cache_.lengths(), cache_.rows(), request)) {
      return Refusal{*reason};
    }
    attention_.release_step();
    if (request.poison) cache_.poison(*request.poison);
    const std::span<const EntryPlan> plans = cache_.plan(request.tokens);
    cache_.place(request);
    attention_.launch(request, plans);
    cache_.settle();
    if (auto failure = finish()) return *failure;
    StepResult result;
    result.output = attention_.output();
    if (request.want_rows) result.rows = cache_.present();
    release();
    return result;
  }

  Answer<std::monostate> rollback(std::span<const std::int64_t> tokens) override {
    if (broke_) return *broke_;
    if (auto reason = check_per_entry(config_, "rollback", tokens)) return Refusal{*reason};
    if (auto reason = cache_.why_not_rollback(tokens)) return Refusal{*reason};
    cache_.rollback(tokens);
    if (auto failure = finish()) return *failure;
    release();
    return std::monostate{};
  }

  Answer<std::monostate> load(const LoadRequest& request) override {
    if (broke_) return *broke_;
    if (auto reason = check_load(config_, request)) return Refusal{*reason};
    cache_.load(request);
    if (auto failure = finish()) return *failure;
    return std::monostate{};
  }

  Answer<CacheRows> present() override {
    if (broke_) return *broke_;
    return cache_.present();
  }

  std::string last_store(const ElementPlace& place) const override {
    const std::byte* const at = place.of == ElementPlace::Of::output ? attention_.address_of(place)
                                                                     : cache_.address_of(place);
    return at == nullptr || broke_ ? "" : machine_->last_store(at);
  }

 private:
  /// A machine that broke stays broken: nobody knows what its memory holds.
  std::optional<Failure> finish() {
    if (auto failure = machine_->finish()) broke_ = std::move(failure);
    return broke_;
  }
  void release() {
    cache_.release_step();
    // What stored an output can be asked until the next step.
    if (!config_.record_stores) attention_.release_step();
  }

  std::unique_ptr<Machine> machine_;  // Outlives the memory that the others hold.
  SessionConfig config_;
  DeviceCache cache_;
  DeviceAttention attention_;
  std::optional<Failure> broke_;
};

}  // namespace

std::unique_ptr<Session> make_session(std::unique_ptr<Machine> machine,
                                      const SessionConfig& config) {
  return std::make_unique<DeviceSession>(std::move(machine), config);
}

Capabilities session_claims(bool quantised) {
  Capabilities can = gqa_claims();
  // What no kernel here computes.
  for (const char* feature : {"rotary", "qk_norm", "qk_output", "packed_qkv", "scaling_bits"}) {
    can.features.erase(feature);
  }
  can.features.insert({"launches", "window_bits", "capacity_bits", "company_bits", "repeat_bits",
                       "schedule_bits", "nan_safe"});
  if (quantised) {
    claim_quantised_only(can, "int8");
    return can;
  }
  add_attention_claims(can);
  can.features.erase("softmax_precision");
  return can;
}

}  // namespace kvcheck::kernels::device
