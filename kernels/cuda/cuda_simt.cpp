// cuda-simt: the kernels of kernels/cuda under the SIMT runtime.
#include "kernels/cuda/cuda_simt.h"

#include <utility>

#include "kernels/cpu/request_check.h"
#include "kernels/cuda/arithmetic.h"
#include "kernels/cuda/session.h"
#include "kernels/cuda/simt_machine.h"

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

}  // namespace

std::unique_ptr<Target> make_cuda_simt() {
  return make_cuda_simt(device::Fault::none, false, "cuda-simt");
}

std::unique_ptr<Target> make_cuda_simt_quantised() {
  return make_cuda_simt(device::Fault::none, true, "cuda-simt-q8");
}

std::unique_ptr<Target> make_cuda_simt(device::Fault fault, bool quantised, std::string name) {
  return std::make_unique<CudaSimt>(quantised, std::move(name), fault);
}

}  // namespace kvcheck::kernels
