// The state of one search.
#include "shrinkers/attempt.h"

#include <utility>

#include "model/scenario_json.h"
#include "shrinkers/fields.h"

namespace kvcheck::shrinkers {

using model::Scenario;

Attempt::Attempt(Scenario start, const StillFails& still_fails, const Budget& budget)
    : current_(std::move(start)),
      still_fails_(still_fails),
      budget_(budget),
      begin_(std::chrono::steady_clock::now()) {
  judged_.emplace(model::content_hash(current_), true);
}

double Attempt::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
}

bool Attempt::spent() {
  if (stop_ != Stop::fixed_point) return true;
  if (evaluations_ >= budget_.evaluations) {
    stop_ = Stop::evaluations;
  } else if (evaluations_ - last_progress_ >= budget_.stall) {
    stop_ = Stop::stall;
  } else if (std::chrono::steady_clock::now() - begin_ >= budget_.time) {
    stop_ = Stop::time;
  }
  return stop_ != Stop::fixed_point;
}

bool Attempt::propose(const Scenario& candidate, const std::string& words) {
  if (stop_ != Stop::fixed_point) return false;
  Scenario next = model::normalise(candidate);
  if (!smaller(next, current_) || !model::validate(next).empty()) return false;
  // A known failure that is smaller than the current one would be current, so known means passing.
  const std::string hash = model::content_hash(next);
  if (judged_.contains(hash)) return false;
  // Only a candidate that would be run can exhaust the budget: a search that ends exactly at its
  // limit with nothing left to try has reached its fixed point.
  if (spent()) return false;
  ++evaluations_;
  const bool fails = still_fails_(next);
  judged_.emplace(hash, fails);
  if (!fails) return false;
  std::string change = difference(current_, next, words.empty());
  if (!words.empty()) change = change.empty() ? words : words + ", " + change;
  trail_.push_back({pass_, std::move(change), evaluations_});
  last_progress_ = evaluations_;
  current_ = std::move(next);
  return true;
}

namespace {

bool propose_value(Attempt& attempt, const Number& number, std::int64_t value) {
  Scenario candidate = attempt.current();
  number.write(candidate, value);
  return attempt.propose(candidate);
}

/// \pre `low` does not fail
void bisect(Attempt& attempt, const Number& number, std::int64_t low) {
  std::int64_t high = number.read(attempt.current());
  while (low + 1 < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (propose_value(attempt, number, middle)) {
      high = std::min(middle, number.read(attempt.current()));
    } else {
      low = middle;
    }
  }
}

}  // namespace

void lower(Attempt& attempt, const Number& number, std::int64_t floor) {
  const std::int64_t value = number.read(attempt.current());
  if (value <= floor || propose_value(attempt, number, floor) || value == floor + 1) return;
  if (propose_value(attempt, number, value - 1)) {
    bisect(attempt, number, floor);
  } else if (value - floor > 4 && propose_value(attempt, number, floor + (value - floor) / 2)) {
    // One lower passes and half fails: not monotone, so the lower half is searched afresh.
    bisect(attempt, number, floor);
  }
}

}  // namespace kvcheck::shrinkers
