// Passes over the list of steps.
#include <algorithm>
#include <variant>

#include <fmt/format.h>

#include "shrinkers/edits.h"
#include "shrinkers/passes.h"

namespace kvcheck::shrinkers {
namespace {

using model::Append;
using model::Past;
using model::Rollback;
using model::Scenario;

std::size_t step_count(const Attempt& attempt) { return attempt.current().steps.size(); }

bool propose_past(Attempt& attempt, std::size_t count) {
  const Scenario& s = attempt.current();
  if (count == 1 && !std::holds_alternative<Append>(s.steps[0])) return false;
  return attempt.propose(
      steps_to_past(s, count),
      count == 1 ? fmt::format("steps: step 0 ({}) became the past", describe(s.steps[0]))
                 : fmt::format("steps: steps 0 to {} became the past", count - 1));
}

std::string removal_words(const Scenario& s, std::size_t first, std::size_t count) {
  return count == 1 ? fmt::format("steps: removed step {} ({})", first, describe(s.steps[first]))
                    : fmt::format("steps: removed steps {} to {}", first, first + count - 1);
}

}  // namespace

void cut_tail(Attempt& attempt) {
  // A failure at one step needs no later step, so bisection finds the shortest failing head.
  lower(attempt,
        {[](const Scenario& s) { return static_cast<std::int64_t>(s.steps.size()); },
         [](Scenario& s, std::int64_t count) { s.steps.resize(static_cast<std::size_t>(count)); }},
        1);
}

void lead_in_to_past(Attempt& attempt) {
  // The more steps become the past the better; halving keeps the failed tries few. The last step
  // stays, unless it is alone and asks nothing.
  const auto* only = std::get_if<Append>(&attempt.current().steps[0]);
  if (step_count(attempt) == 1 && only && largest(only->queries) == 0) propose_past(attempt, 1);
  for (std::size_t count = step_count(attempt) - 1; count >= 1; count /= 2) {
    if (count < step_count(attempt) && propose_past(attempt, count)) return;
  }
}

void delete_chunks(Attempt& attempt) {
  for (std::size_t size = std::max<std::size_t>(1, step_count(attempt) / 2); size >= 1; size /= 2) {
    for (std::size_t end = step_count(attempt); end >= size; end -= size) {
      const Scenario& s = attempt.current();
      if (end > s.steps.size() || size >= s.steps.size()) continue;
      attempt.propose(remove_steps(s, end - size, size), removal_words(s, end - size, size));
    }
  }
}

void cancel_rollbacks(Attempt& attempt) {
  for (std::size_t i = step_count(attempt); i-- > 0;) {
    const Scenario& s = attempt.current();
    if (i >= s.steps.size() || !std::holds_alternative<Rollback>(s.steps[i])) continue;
    attempt.propose(cancel_rollback(s, i),
                    fmt::format("steps: cancelled step {} ({}) against the tokens it drops", i,
                                describe(s.steps[i])));
  }
}

void merge_neighbours(Attempt& attempt) {
  for (std::size_t i = step_count(attempt); i-- > 0;) {
    const Scenario& s = attempt.current();
    if (const auto merged = merge_steps(s, i)) {
      attempt.propose(*merged, fmt::format("steps: merged steps {} and {} ({}; {})", i, i + 1,
                                           describe(s.steps[i]), describe(s.steps[i + 1])));
    }
  }
}

}  // namespace kvcheck::shrinkers
