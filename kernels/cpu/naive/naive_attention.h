// The arithmetic of cpu-naive: a matrix of scores, two-pass softmax, weighted sum of values.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "kernels/cpu/cache.h"
#include "kernels/cpu/new_rows.h"
#include "kernels/cpu/planted/faults.h"
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

struct AttentionAnswer {
  Tensor output;             ///< [B,S,Nq,Hv], S = most queries; rows past an entry's are zero.
  std::optional<Tensor> qk;  ///< As StepResult::qk.
};

/// Per query and head: dot products over ascending lanes, times the scale; softcap; plus the mask's
/// bias. Keys that are not visible are left out, never multiplied by zero; sums run over the
/// visible keys in ascending position, so that bits depend on neither the buffer nor the split of
/// steps. A query that sees no key gives zero. All arithmetic is in Real; one rounding at the
/// store.
template <class Real>
AttentionAnswer attend(const AttentionStep& step, const StepRows<Real>& operands);

}  // namespace kvcheck::kernels
