// One launch after the other: limits, seeds, and what came of each.
#include "kernels/simt/launch.h"

#include <string>
#include <utility>

#include "kernels/simt/global_state.h"
#include "kernels/simt/random.h"
#include "kernels/simt/runner.h"

namespace kvcheck::kernels::simt {
namespace {

// Of compute capability 8.0 to 9.0; an sm_80 has 163 KiB of shared memory for a block, an sm_90
// has 227.
constexpr std::uint32_t kMostThreads = 1024;
constexpr std::uint32_t kMostShared = 227 * 1024;
constexpr std::uint32_t kMostGridX = 0x7fffffff;
constexpr std::uint32_t kMostGridYZ = 65535;

std::string beyond_limits(const device::LaunchShape& shape) {
  const auto between = [](const char* name, std::uint32_t value, std::uint32_t least,
                          std::uint32_t most) -> std::string {
    if (value >= least && value <= most) return "";
    return std::string(name) + " is " + std::to_string(value) + ", the hardware takes " +
           std::to_string(least) + " to " + std::to_string(most);
  };
  for (const std::string& words : {between("grid.x", shape.grid.x, 1, kMostGridX),
                                   between("grid.y", shape.grid.y, 1, kMostGridYZ),
                                   between("grid.z", shape.grid.z, 1, kMostGridYZ),
                                   between("threads", shape.threads, 32, kMostThreads),
                                   between("shared_bytes", shape.shared_bytes, 0, kMostShared)}) {
    if (!words.empty()) return words;
  }
  if (shape.threads % 32 != 0) {
    return "threads is " + std::to_string(shape.threads) + ", which is no multiple of 32";
  }
  return "";
}

}  // namespace

void SimtQueue::run(void (*body)(const void*), const device::LaunchShape& shape,
                    const void* parameters, const void* kernel) {
  // The schedule's seed and the number of the launch, mixed.
  Random mixed(schedule_.seed);
  Random seeds(mixed.next() ^ launches_++);
  if (std::string words = beyond_limits(shape); !words.empty()) {
    Defect defect;
    defect.kind = DefectKind::limits;
    defect.detail = std::move(words);
    defects_.push_back(std::move(defect));
    return;
  }
  kernels_.push_back(kernel != nullptr ? kernel : reinterpret_cast<const void*>(body));
  if (StoreLog* const log = memory_->state().log.get()) {
    log->begin_launch(kernels_.back(), shape.grid);
  }
  Monitor monitor(checks_, shape, *memory_);
  Runner::of_this_thread().run(body, shape, parameters, schedule_.order, seeds.next(), monitor);
  for (Defect& defect : monitor.finish()) defects_.push_back(std::move(defect));
  counters_.add(monitor.counters());
}

std::vector<Defect> SimtQueue::take_defects() {
  kernels_.clear();
  return std::exchange(defects_, {});
}

}  // namespace kvcheck::kernels::simt
