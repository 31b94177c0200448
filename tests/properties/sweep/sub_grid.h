// Every n-th configuration of a grid, for tests that need not see all.
#pragma once

#include <cstdint>
#include <vector>

#include "properties/sweep/grid.h"
#include "properties/sweep/workers.h"

namespace kvcheck::properties {

inline Grid sub_grid(const Grid& grid, std::int64_t first, std::int64_t every) {
  Grid part = grid;
  part.count = (grid.count - first + every - 1) / every;
  part.at = [&grid, first, every](std::int64_t i) { return grid.at(first + i * every); };
  return part;
}

/// `count` workers, whose targets `make` and `make_against` make.
inline Workers workers_of(int count, const std::function<TargetPointer()>& make,
                          const std::function<TargetPointer()>& make_against = nullptr,
                          const std::atomic<bool>* interrupted = nullptr) {
  std::vector<WorkerTargets> targets;
  for (int i = 0; i < count; ++i) {
    targets.push_back({make(), make_against ? make_against() : nullptr});
  }
  return {std::move(targets), interrupted};
}

}  // namespace kvcheck::properties
