// What tests of attention kernels ask of a run: right numbers, no defect, no bank conflict, under
// one order of threads or all; and of a planted fault, that its check sees it.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "kernels/cuda/planted.h"
#include "tests/kernels/cuda/fused_case.h"
#include "tests/kernels/cuda/world.h"

namespace kvcheck::kernels::device {

inline void expect_right(const FusedCase& problem, const simt::Schedule& schedule = {}) {
  const FusedRun run = run_fused(problem, schedule);
  EXPECT_TRUE(run.defects.empty()) << run.first_defect();
  EXPECT_EQ(difference(problem, run), "");
  EXPECT_EQ(run.counters.bank_conflicts, 0);
}

inline void expect_right_under_every_order(const FusedCase& problem) {
  for (const simt::Order order : kAllOrders) {
    SCOPED_TRACE(to_string(order));
    expect_right(problem, {order, problem.seed});
  }
}

/// Whether the run shows the fault by the check that its entry names, and by no other: a defect at
/// a line of a file that begins with `files`, a bank conflict, or wrong values alone.
inline bool caught(const DeviceFault& fault, const FusedCase& problem, const FusedRun& run,
                   std::string_view files, std::string& why) {
  if (fault.caught_by == "values") {
    why = run.first_defect();
    if (why.empty()) why = difference(problem, run);
    return run.defects.empty() && !why.empty();
  }
  if (fault.caught_by == "bank_conflicts") {
    why = std::to_string(run.counters.bank_conflicts) + " bank conflicts";
    return run.counters.bank_conflicts > 0;
  }
  return std::any_of(run.defects.begin(), run.defects.end(), [&](const simt::Defect& defect) {
    why = defect.sentence();
    std::string kind(to_string(defect.kind));
    std::replace(kind.begin(), kind.end(), ' ', '_');
    return kind == fault.caught_by && defect.place.line > 0 &&
           defect.place.file.rfind(files, 0) == 0;
  });
}

/// Runs the case with the fault under each order until one shows it.
inline void expect_caught(const DeviceFault& fault, const FusedCase& problem,
                          std::string_view files) {
  const KernelTable table = planted_kernels(fault.fault);
  bool found = false;
  std::string why;
  for (const simt::Order order : kAllOrders) {
    found = found || caught(fault, problem, run_fused(problem, {order, 1}, table), files, why);
  }
  EXPECT_TRUE(found) << fault.name << ", by " << fault.caught_by << ": " << why;
}

}  // namespace kvcheck::kernels::device
