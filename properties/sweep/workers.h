// Work spread over threads, each with a target of its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "kernels/target.h"

namespace kvcheck::properties {

using TargetPointer = std::unique_ptr<kernels::Target>;

/// Targets of one worker: the one that is judged and, of a comparison, the other; null otherwise.
struct WorkerTargets {
  TargetPointer target, against;
};

class Workers {
 public:
  /// As many workers as there are targets.
  /// \pre targets is not empty
  Workers(std::vector<WorkerTargets> targets, const std::atomic<bool>* interrupted)
      : targets_(std::move(targets)), interrupted_(interrupted) {}

  /// Calls `work(targets, i)` for every i in [0, count), in any order, until interrupted; `watch`
  /// is called now and then on the calling thread with the number done.
  /// \throws what `work` throws, after all workers have stopped
  void run(std::int64_t count, const std::function<void(WorkerTargets&, std::int64_t)>& work,
           const std::function<void(std::int64_t done)>& watch = nullptr);

  bool interrupted() const { return interrupted_ && *interrupted_; }
  std::size_t count() const { return targets_.size(); }

 private:
  std::vector<WorkerTargets> targets_;
  const std::atomic<bool>* interrupted_;
};

}  // namespace kvcheck::properties
