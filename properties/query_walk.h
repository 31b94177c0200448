// Walking the queries of a run that read-back looks at.
#pragma once

#include <algorithm>
#include <cstdint>
#include <variant>

#include "model/scenario.h"
#include "model/timeline.h"
#include "model/visibility.h"
#include "properties/execution.h"
#include "properties/read_back.h"

namespace kvcheck::properties {

/// Tokens of the longest entry at any step, at least 1.
inline std::int64_t longest(const model::Timeline& timeline) {
  std::int64_t length = 1;
  for (const auto& step : timeline.steps()) {
    for (const auto& entry : step.entries) length = std::max(length, entry.length);
  }
  return length;
}

inline bool answered_with_output(const Execution& execution, std::size_t step) {
  const StepAnswer& answer = execution.steps[step];
  return answer.status == StepAnswer::Status::ok && answer.result.output.has_value();
}

/// Calls `each` with every query of the defined steps and the contract's set. The query is one
/// object that goes from place to place.
template <class Each>
void for_each_query(const model::Scenario& scenario, const model::Timeline& timeline, Each&& each) {
  const bool alike = model::heads_see_alike(scenario);
  MeasuredQuery query;
  for (std::size_t i = 0; i < scenario.steps.size() && timeline.steps()[i].defined; ++i) {
    if (!std::holds_alternative<model::Append>(scenario.steps[i])) continue;
    for (std::int64_t b = 0; b < scenario.batch; ++b) {
      const auto& state = timeline.steps()[i].entries[static_cast<std::size_t>(b)];
      for (std::int64_t q = 0; q < state.queries; ++q) {
        for (std::int64_t h = 0; h < scenario.query_heads; ++h) {
          query.step = i;
          query.entry = b;
          query.head = h;
          query.query = q;
          query.position = {state.origin.value + q};
          if (h == 0 || !alike) {
            model::visible_positions(scenario, timeline, i, b, h, q, query.expected);
          }
          if (!each(query)) return;
        }
      }
    }
  }
}

}  // namespace kvcheck::properties
