// A machine that executes the kernels on this CPU, under the SIMT runtime's checks.
#pragma once

#include <memory>
#include <vector>

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

  /// From now on last_store() answers; launches take longer.
  void record_stores() {
    memory_.record_stores();
    records_ = true;
  }

  std::byte* allocate(std::int64_t bytes, Use use, std::string name) override;
  void release(std::byte* data) override { memory_.release(data); }
  void write(std::byte* to, std::span<const std::byte> from) override;
  void read(const std::byte* from, std::span<std::byte> to) override;
  void expect_written(const std::byte* begin, std::int64_t bytes) override {
    expected_.push_back({begin, static_cast<std::size_t>(bytes), queue_.kernels().size()});
  }
  std::string last_store(const std::byte* address) const override;
  Queue& queue() override { return queue_; }
  const KernelTable& kernels() const override { return kernels_; }
  /// The first defects, each with its place, as one failure.
  std::optional<Failure> finish() override;

  const simt::Counters& counters() const { return queue_.counters(); }

 private:
  const KernelTable& kernels_;
  simt::GlobalMemory memory_;
  simt::SimtQueue queue_;
  bool records_ = false;

  /// Bytes that launches are to write, those from number `launch` of the queue on.
  struct Expected {
    const std::byte* begin;
    std::size_t bytes, launch;
  };
  std::vector<Expected> expected_;
};

}  // namespace kvcheck::kernels::device
