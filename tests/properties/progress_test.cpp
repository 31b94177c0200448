// Progress is redrawn on a terminal and plain elsewhere.
#include "properties/progress.h"

#include <sstream>

#include <gtest/gtest.h>

namespace kvcheck::properties {
namespace {

TEST(Progress, SaysWhatWasFound) {
  std::ostringstream err;
  Progress progress(err, false, false);
  FindingRecord finding;
  finding.property = "mask.visible_set";
  finding.target = "cpu-naive";
  finding.kind = Kind::leak;
  finding.hash = "0123";
  progress.finding(finding);
  EXPECT_EQ(err.str(), "found: mask.visible_set on cpu-naive: leak (0 shrink evaluations, 0123)\n");
}

TEST(Progress, SaysNothingWhenQuiet) {
  std::ostringstream err;
  Progress progress(err, true, true);
  RunRecord record;
  progress.start("cpu-naive", Progress::Clock::now(), record);
  progress.tick();
  progress.line("text");
  EXPECT_EQ(err.str(), "");
}

TEST(Progress, DoesNotRepeatItselfAtOnce) {
  std::ostringstream err;
  Progress progress(err, false, false);
  RunRecord record;
  progress.start("cpu-naive", Progress::Clock::now(), record);
  for (int i = 0; i < 100; ++i) progress.tick();
  EXPECT_EQ(err.str(), "");
}

}  // namespace
}  // namespace kvcheck::properties
