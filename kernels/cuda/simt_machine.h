// A machine that executes the kernels on this CPU, under the SIMT runtime's checks.
#pragma once

#include <memory>

#include "kernels/cuda/machine.h"
#include "kernels/simt/launch.h"
#include "kernels/simt/schedule.h"

namespace kvcheck::kernels::device {

class SimtMachine final : public Machine {
 public:
  /// \param kernels simt_kernels(), or a copy with a planted fault; outlives the machine
  SimtMachine(const KernelTable& kernels, const simt::Schedule& schedule,
              const simt::Checks& checks = {})
      : kernels_(kernels), queue_(memory_, schedule, checks) {}

  std::byte* allocate(std::int64_t bytes, Use use, std::string name) override;
  void release(std::byte* data) override { memory_.release(data); }
  void write(std::byte* to, std::span<const std::byte> from) override;
  void read(const std::byte* from, std::span<std::byte> to) override;
  Queue& queue() override { return queue_; }
  const KernelTable& kernels() const override { return kernels_; }
  /// The first defects, each with its place, as one failure.
  std::optional<Failure> finish() override;

  const simt::Counters& counters() const { return queue_.counters(); }

 private:
  const KernelTable& kernels_;
  simt::GlobalMemory memory_;
  simt::SimtQueue queue_;
};

}  // namespace kvcheck::kernels::device
