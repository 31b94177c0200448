// Shrinking: from a failing scenario to a small one that fails in the same way.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/scenario.h"

namespace kvcheck::shrinkers {

/// True when the scenario fails with the signature that is being shrunk. Called once per distinct
/// valid scenario; must be idempotent. What it throws ends the search and reaches the caller.
using StillFails = std::function<bool(const model::Scenario&)>;

/// Answers of a StillFails by content hash.
using Judged = std::unordered_map<std::string, bool>;

/// Where the failure was seen, for the guided jump; -1 = not known.
struct Hint {
  std::int64_t step = -1;
  std::int64_t entry = -1;
  std::int64_t query_head = -1;
};

struct Budget {
  std::int64_t evaluations = 2000;
  std::int64_t stall = 400;  ///< Evaluations in a row without progress.
  std::chrono::milliseconds time{60000};
};

/// One accepted reduction.
struct Accepted {
  std::string pass;    ///< "batch", "steps.cut_tail", "coupled", ...
  std::string change;  ///< "batch 3 -> 1".
  std::int64_t evaluation = 0;
};

enum class Stop { fixed_point, evaluations, stall, time };

struct Result {
  model::Scenario minimal;
  std::vector<Accepted> trail;
  /// Calls of still_fails during the search; the verifying call comes on top.
  std::int64_t evaluations = 0;
  double seconds = 0;
  Stop stop = Stop::fixed_point;  ///< Anything but fixed_point: "not minimal".
  bool verified = false;          ///< The final scenario failed once more when run again.
  Judged judged;                  ///< Everything that was run, for explain().
};

/// Runs the passes of passes.h in their order; stays in a pass while it helps; loops to a fixed
/// point. Accepts only scenarios that are strictly smaller under `smaller` and that validate.
/// Deterministic: the same scenario, answers and hint give the same result.
/// \pre still_fails(scenario), validate(scenario) is empty
Result shrink(const model::Scenario& scenario, const StillFails& still_fails, const Hint& hint,
              const Budget& budget);

/// The total order that every accepted reduction decreases, lexicographic: batch, KV heads, query
/// heads, head size, value head size; number of steps, of rollbacks, tokens, queries, appends that
/// are no `Past`, tokens rolled back; layout (full, block), window (off, on), capacity, window
/// other than capacity, window size; mask (kind, rank, share, empty rows, seed), nonpad lengths,
/// causal (attention) or not (gqa), scale, separate buffers; optional features, each off before on;
/// fill (position_code, position_block, position_digits, needles, random, literal), its index,
/// first entry and seed, poison, element type (f32 f16 bf16 f64), opset, generations other than the
/// default; then the steps themselves. The tensors of a literal fill are not compared.
bool smaller(const model::Scenario& a, const model::Scenario& b);

std::string_view to_string(Stop stop);

}  // namespace kvcheck::shrinkers
