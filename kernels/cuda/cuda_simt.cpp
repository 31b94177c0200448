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
    capabilities_.features.insert("last_store");
    device::declare_arithmetic(capabilities_, quantised);
  }

  const Capabilities& capabilities() const override { return capabilities_; }

  Answer<std::unique_ptr<Session>> open(const SessionConfig& config) override {
    if (auto reason = check_config(config)) return Refusal{*reason};
    if (auto reason = check_claims(capabilities_, config)) return Refusal{*reason};
    simt::Schedule schedule;
    if (config.launch) {
      schedule = {*simt::order_from(config.launch->order), config.launch->seed};
    }
    auto machine = std::make_unique<device::SimtMachine>(kernels_, schedule);
    if (config.record_stores) machine->record_stores();
    return device::make_session(std::move(machine), config);
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

/// Whether a session can show the fault. The others are seen by the tests of the kernels alone.
bool shows_in_sessions(const device::DeviceFault& fault) {
  // A counter, which no property reads.
  if (fault.caught_by == "bank_conflicts") return false;
  switch (fault.fault) {
    // Sessions move rows to the front, or from one buffer to another.
    case device::Fault::move_ascending_only:
    // Lengths stay below 2^31.
    case device::Fault::decode_narrow_position:
    // Nobody reads the rows of queries that an entry does not have.
    case device::Fault::unfused_queries_of_the_batch:
    // Values that a mask hides are finite in sessions.
    case device::Fault::unfused_hidden_times_zero:
    case device::Fault::matrix_hidden_value:
    case device::Fault::prefill_hidden_value_kept:
      return false;
    default:
      return true;
  }
}

/// FaultInfo::from_length: what is wrong with splits needs two, of kSplitUnit keys at least; a
/// stage is used again from the third tile of a warp on; 16 bits hold the offsets of short caches.
std::int64_t from_length(device::Fault fault) {
  switch (fault) {
    case device::Fault::decode_no_empty_split:
    case device::Fault::decode_sink_each_split:
    case device::Fault::merge_no_rescale:
    case device::Fault::decode_stage_reuse:
      return device::kSplitUnit + 1;
    case device::Fault::append_offset_narrow:
      return 2 * device::kSplitUnit + 1;
    default:
      return 1;
  }
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
    if (!shows_in_sessions(fault)) continue;
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
    if (planted.name != fault || target_of(planted) != target || !shows_in_sessions(planted)) {
      continue;
    }
    return std::make_unique<CudaSimt>(
        planted.int8_cache, std::string(target) + "+" + std::string(fault), planted.fault);
  }
  return nullptr;
}

}  // namespace kvcheck::kernels
