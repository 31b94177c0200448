// The state of one search: the best scenario so far, what was run, and the budget.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "model/scenario.h"
#include "shrinkers/shrink.h"

namespace kvcheck::shrinkers {

class Attempt {
 public:
  /// `still_fails` must outlive the attempt.
  Attempt(model::Scenario start, const StillFails& still_fails, const Budget& budget);

  /// The smallest scenario so far that fails.
  const model::Scenario& current() const { return current_; }

  /// Normalises `candidate` and makes it current when it is valid, strictly smaller and still
  /// fails; each distinct scenario is run once. `words` say in the trail what was done to the
  /// steps; without words the changed step fields are listed.
  bool propose(const model::Scenario& candidate, const std::string& words = {});

  /// Name of the pass for the trail.
  void enter(std::string_view pass) { pass_ = pass; }

  /// No more calls: propose() answers false from here on.
  bool spent();

  Stop stop() const { return stop_; }
  double seconds() const;
  std::int64_t evaluations() const { return evaluations_; }
  const std::vector<Accepted>& trail() const { return trail_; }
  Judged take_judged() { return std::move(judged_); }

 private:
  model::Scenario current_;
  const StillFails& still_fails_;
  Budget budget_;
  std::chrono::steady_clock::time_point begin_;
  std::string pass_;
  Judged judged_;
  std::vector<Accepted> trail_;
  std::int64_t evaluations_ = 0;
  std::int64_t last_progress_ = 0;
  Stop stop_ = Stop::fixed_point;
};

/// One number of a scenario. write() may be given any value between the floor and the current
/// one; a scenario that has lost the number reads as the floor.
struct Number {
  std::function<std::int64_t(const model::Scenario&)> read;
  std::function<void(model::Scenario&, std::int64_t)> write;
};

/// Lowers a number to `floor`, else as far as it goes: one lower first, then by bisection.
void lower(Attempt& attempt, const Number& number, std::int64_t floor);

}  // namespace kvcheck::shrinkers
