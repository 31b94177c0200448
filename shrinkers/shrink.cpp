// The search: guided jump, then all passes until nothing helps.
#include "shrinkers/shrink.h"

#include "shrinkers/attempt.h"
#include "shrinkers/passes.h"

namespace kvcheck::shrinkers {
namespace {

/// Runs one pass as long as it helps.
void stay_in(const Pass& pass, Attempt& attempt) {
  std::size_t before = 0;
  do {
    before = attempt.trail().size();
    attempt.enter(pass.name);
    pass.run(attempt);
  } while (attempt.trail().size() != before);
}

}  // namespace

Result shrink(const model::Scenario& scenario, const StillFails& still_fails, const Hint& hint,
              const Budget& budget) {
  Attempt attempt(scenario, still_fails, budget);
  guided_jump(attempt, hint);
  std::size_t before = 0;
  do {
    before = attempt.trail().size();
    for (const Pass& pass : passes()) stay_in(pass, attempt);
  } while (attempt.trail().size() != before);

  Result result;
  result.minimal = attempt.current();
  result.trail = attempt.trail();
  result.evaluations = attempt.evaluations();
  result.stop = attempt.stop();
  result.verified = still_fails(result.minimal);
  result.seconds = attempt.seconds();
  result.judged = attempt.take_judged();
  return result;
}

std::string_view to_string(Stop stop) {
  switch (stop) {
    case Stop::fixed_point:
      return "fixed point";
    case Stop::evaluations:
      return "evaluation budget";
    case Stop::stall:
      return "no progress";
    case Stop::time:
      return "time budget";
  }
  return "?";
}

}  // namespace kvcheck::shrinkers
