// cuda-simt: the kernels of kernels/cuda under the SIMT runtime.
#include "kernels/cuda/cuda_simt.h"

#include <utility>

#include "kernels/cpu/request_check.h"
#include "kernels/cuda/arithmetic.h"
#include "kernels/cuda/planted.h"
#include "kernels/cuda/session.h"
#include "kernels/cuda/simt_machine.h"
#include "kernels/cuda/takes.h"

namespace kvcheck::kernels {
namespace {

class CudaSimt final : public Target {
 public:
  CudaSimt(bool quantised, std::string name, device::Fault fault)
      : capabilities_(device::session_claims(quantised)),
        kernels_(fault == device::Fault::none ? device::simt_kernels()
                                              : device::planted_kernels(fault)) {
    capabilities_.name = std::move(name);
    device::declare_arithmetic(capabilities_, quantised);
  }

  const Capabilities& capabilities() const override { return capabilities_; }

  Answer<std::unique_ptr<Session>> open(const SessionConfig& config) override {
    if (auto reason = check_config(config)) return Refusal{*reason};
    if (auto reason = check_claims(capabilities_, config)) return Refusal{*reason};
    simt::Schedule schedule;
    if (config.launch) {
      const auto order = simt::order_from(config.launch->order);
      if (!order) {
        return Refusal{"launch.order = " + config.launch->order +
                       ": must be lockstep, random, reverse, priority or starve"};
      }
      schedule = {*order, config.launch->seed};
    }
    return device::make_session(std::make_unique<device::SimtMachine>(kernels_, schedule), config);
  }

 private:
  Capabilities capabilities_;
  device::KernelTable kernels_;
};

constexpr std::string_view kPlain = "cuda-simt";
constexpr std::string_view kQuantised = "cuda-simt-q8";

std::string_view target_of(const device::DeviceFault& fault) {
  return fault.int8_cache ? kQuantised : kPlain;
}

/// Bank conflicts change no answer: only a counter, which no property reads, shows them.
bool shows_in_answers(const device::DeviceFault& fault) {
  return fault.caught_by != "bank_conflicts";
}

/// FaultInfo::from_length: what is wrong with splits needs two, and one is kSplitUnit keys at
/// least.
std::int64_t from_length(device::Fault fault) {
  using enum device::Fault;
  const bool of_splits = fault == decode_no_empty_split || fault == decode_sink_each_split ||
                         fault == merge_no_rescale;
  return of_splits ? device::kSplitUnit + 1 : 1;
}

/// What kind of fault the audit takes it for (properties/audit/right_kinds.h).
const char* kind_of(const device::DeviceFault& fault) {
  const bool numbers = fault.caught_by == "rows" || fault.caught_by == "values";
  return numbers ? "device kernel" : "device defect";
}

}  // namespace

std::string cuda_simt_problem() { return ""; }

std::unique_ptr<Target> make_cuda_simt() {
  return std::make_unique<CudaSimt>(false, std::string(kPlain), device::Fault::none);
}

std::unique_ptr<Target> make_cuda_simt_quantised() {
  return std::make_unique<CudaSimt>(true, std::string(kQuantised), device::Fault::none);
}

std::vector<FaultInfo> cuda_simt_faults() {
  std::vector<FaultInfo> faults;
  for (const device::DeviceFault& fault : device::device_faults()) {
    if (!shows_in_answers(fault)) continue;
    FaultInfo info;
    info.name = fault.name;
    info.target = target_of(fault);
    info.kind = kind_of(fault);
    info.statement = std::string(fault.kernel) + ": " + std::string(fault.statement);
    info.from_length = from_length(fault.fault);
    faults.push_back(std::move(info));
  }
  return faults;
}

std::unique_ptr<Target> make_cuda_simt_planted(std::string_view target, std::string_view fault) {
  for (const device::DeviceFault& planted : device::device_faults()) {
    if (planted.name != fault || target_of(planted) != target || !shows_in_answers(planted)) {
      continue;
    }
    return std::make_unique<CudaSimt>(
        planted.int8_cache, std::string(target) + "+" + std::string(fault), planted.fault);
  }
  return nullptr;
}

}  // namespace kvcheck::kernels
