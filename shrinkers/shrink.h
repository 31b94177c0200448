// Shrinking: from a failing scenario to a small one that fails in the same way.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "model/scenario.h"

namespace kvcheck::shrinkers {

/// True when the scenario fails with the signature that is being shrunk. Called once per distinct
/// valid scenario; must be idempotent.
using StillFails = std::function<bool(const model::Scenario&)>;

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
  std::string pass;      ///< "batch", "steps.cut_tail", "coupled.window", ...
  std::string change;    ///< "batch 3 -> 1".
  std::int64_t evaluation = 0;
};

enum class Stop { fixed_point, evaluations, stall, time };

struct Result {
  model::Scenario minimal;
  std::vector<Accepted> trail;
  std::int64_t evaluations = 0;
  double seconds = 0;
  Stop stop = Stop::fixed_point;  ///< Anything but fixed_point: "not minimal".
  bool verified = false;          ///< The final scenario failed once more when run again.
};

/// Runs the passes in the order dims, tail cut, steps, values, parameters; stays in a pass while
/// it helps; loops to a fixed point. Accepts only scenarios that are strictly smaller under
/// `smaller` and that validate.
/// \pre still_fails(scenario)
Result shrink(const model::Scenario& scenario, const StillFails& still_fails, const Hint& hint,
              const Budget& budget);

/// The total order that every accepted reduction decreases: batch, heads, head size, steps,
/// tokens, queries, cache, mask, values.
bool smaller(const model::Scenario& a, const model::Scenario& b);

std::string_view to_string(Stop stop);

}  // namespace kvcheck::shrinkers
