// cuda: the kernels of kernels/cuda on a GPU.
#include "kernels/cuda/cuda_gpu.h"

#include <utility>

#include "kernels/cpu/request_check.h"
#include "kernels/cuda/arithmetic.h"
#include "kernels/cuda/gpu_machine.h"
#include "kernels/cuda/session.h"

namespace kvcheck::kernels {
namespace {

class CudaGpu final : public Target {
 public:
  explicit CudaGpu(bool quantised) : capabilities_(device::session_claims(quantised)) {
    capabilities_.name = quantised ? "cuda-q8" : "cuda";
    capabilities_.version += " on " + device::gpu_name();
    // The device orders its threads itself.
    capabilities_.features.erase("schedule_bits");
    device::declare_arithmetic(capabilities_, quantised);
  }

  const Capabilities& capabilities() const override { return capabilities_; }

  Answer<std::unique_ptr<Session>> open(const SessionConfig& config) override {
    if (auto reason = check_config(config)) return Refusal{*reason};
    if (auto reason = check_claims(capabilities_, config)) return Refusal{*reason};
    auto machine = device::make_gpu_machine();
    if (!machine) return Failure{Failure::Kind::crash, device::gpu_problem()};
    return device::make_session(std::move(machine), config);
  }

 private:
  Capabilities capabilities_;
};

}  // namespace

std::string cuda_problem() { return device::gpu_problem(); }

std::unique_ptr<Target> make_cuda(bool quantised) {
  return cuda_problem().empty() ? std::make_unique<CudaGpu>(quantised) : nullptr;
}

}  // namespace kvcheck::kernels
