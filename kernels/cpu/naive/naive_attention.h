// The arithmetic of cpu-naive: scaled dot products, two-pass softmax, weighted sum of values.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/cpu/cache.h"
#include "kernels/cpu/naive/faults.h"
#include "kernels/target.h"

namespace kvcheck::kernels {

/// A row of the cache that takes part in one query's sums.
struct SeenKey {
  std::int64_t row = 0;
  double bias = 0;  ///< Added to the logit.
  /// Multiplied by zero instead of left out. Only a planted fault does that.
  bool weightless = false;
};

/// One step as attention sees it; plans and rows have one element per batch entry.
struct AttentionStep {
  const SessionConfig& config;
  const StepRequest& request;
  std::span<const EntryPlan> plans;
  std::span<const EntryRows> rows;
  Fault fault = Fault::none;
  bool descending = false;  ///< Sums run from the newest key to the oldest. A planted fault.
};

/// Output [B,S,Nq,Hv] with S = max queries; rows past an entry's queries are zero.
///
/// Per query and head: dot products over ascending lanes, times the scale, plus the mask's bias;
/// keys that are not visible are left out, never multiplied by zero; sums run over the visible
/// keys in ascending position, so that bits depend on neither the buffer nor the split of steps.
/// A query that sees no key gives zero. Arithmetic is f32, or double for f64; one rounding at the
/// store.
Tensor attend(const AttentionStep& step);

}  // namespace kvcheck::kernels
