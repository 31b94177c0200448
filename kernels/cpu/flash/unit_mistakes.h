// What each planted fault does to the plan of units, chunks and threads. Under Fault::none
// everything comes back as it was.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/flash/flash_attention.h"
#include "kernels/cpu/planted/faults.h"

namespace kvcheck::kernels::flash {

/// End of the chunks of a unit whose last visible position is `end` - 1.
inline std::int64_t distort_chunk_end(Fault fault, std::int64_t end, std::int64_t begin,
                                      std::int64_t right) {
  const bool floors = fault == Fault::last_chunk_dropped;
  return floors ? std::max(begin + 1, end / kChunk) : right;
}

/// Units that several threads share out among themselves.
inline std::int64_t distort_units(Fault fault, std::int64_t units) {
  const bool drops = fault == Fault::threads_drop_last_unit && units > 1 && units % 2 == 1;
  return drops ? units - 1 : units;
}

/// The partial results of one unit, in the order in which they are merged.
struct PartRange {
  std::int64_t begin = 0, end = 0, step = 1;
};
inline PartRange distort_parts(Fault fault, PartRange right) {
  if (right.end - right.begin < 2) return right;
  if (fault == Fault::merge_before_last_chunk) --right.end;
  if (fault == Fault::split_merged_backwards) return {right.end - 1, right.begin - 1, -1};
  return right;
}

inline FlashStep without_sinks(FlashStep step) {
  step.sinks = nullptr;
  return step;
}

}  // namespace kvcheck::kernels::flash
