// One pass on its own, for the tests of the passes.
#pragma once

#include <cstdint>

#include <gtest/gtest.h>

#include "shrinkers/passes.h"

namespace kvcheck::shrinkers::testing {

inline bool always(const model::Scenario&) { return true; }

/// What one run of `pass` leaves of `start`, which must be valid.
inline model::Scenario after(void (*pass)(Attempt&), const model::Scenario& start,
                             const StillFails& fails, std::int64_t* evaluations = nullptr) {
  EXPECT_TRUE(model::validate(start).empty());
  Attempt attempt(start, fails, {});
  pass(attempt);
  if (evaluations) *evaluations = attempt.evaluations();
  return attempt.current();
}

}  // namespace kvcheck::shrinkers::testing
