// Watching own targets: a request that does not return, or that ends the process, names its case.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "kernels/target.h"
#include "model/scenario.h"

namespace kvcheck::properties {

/// What one watched target is at.
struct WatchSlot {
  std::atomic<std::uint64_t> busy_since{0};  ///< Tick at which its request began; 0 = none.
  std::atomic<const model::Scenario*> scenario{nullptr};
  std::string target;
};

/// Looks at the slots ten times a second. Time is counted in looks, so that a process that was
/// stopped for a while has not hung.
class Watchdog {
 public:
  /// `on_hang` is called once, on the watchdog's thread, while the hung request goes on.
  Watchdog(std::chrono::milliseconds limit, std::function<void(const WatchSlot&)> on_hang);
  ~Watchdog();

  /// A target that is watched; calls are handed on to `target`.
  std::unique_ptr<kernels::Target> watch(std::unique_ptr<kernels::Target> target);

  /// Says which scenario the calling thread's target is at. The scenario must stay until the next
  /// call.
  static void note(const model::Scenario& scenario);

 private:
  void look();

  std::int64_t limit_;  // In looks.
  std::function<void(const WatchSlot&)> on_hang_;
  std::atomic<std::uint64_t> tick_{1};
  std::mutex mutex_;
  std::vector<std::shared_ptr<WatchSlot>> slots_;
  std::jthread thread_;
};

/// From now on a signal that ends the process (a segmentation fault, an abort) writes the scenario
/// that the thread was at to `file` first, as far as that is still possible.
void write_scenario_on_crash(const std::filesystem::path& file);

}  // namespace kvcheck::properties
