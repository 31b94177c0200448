// Every planted fault of prefill is caught by the check that its entry names.
#include <gtest/gtest.h>

#include "tests/kernels/cuda/fused_checks.h"

namespace kvcheck::kernels::device {
namespace {

/// A problem that has what every fault needs: several tiles and blocks, a window, lanes that fill
/// no tile, a batch whose last block is not full, queries at other places than the end.
FusedCase rich_case() {
  FusedCase c;
  c.query_heads = 2;
  c.head_size = 56;
  c.value_head_size = 48;
  c.window = 100;
  c.largest_query = 8;
  c.entries = {{.live = 170, .origin = 90, .queries = 70, .capacity = 176},
               {.live = 30, .origin = 5, .queries = 9, .capacity = 32}};
  return c;
}

FusedCase case_of(Fault fault) {
  FusedCase c = rich_case();
  if (fault == Fault::prefill_rows_past_the_end) c.entries.pop_back();
  if (fault == Fault::prefill_hidden_value_kept) c.mask = MaskKind::boolean;
  return c;
}

TEST(PrefillFaults, EachIsCaught) {
  int count = 0;
  for (const DeviceFault& fault : device_faults()) {
    if (fault.kernel != "prefill") continue;
    ++count;
    expect_caught(fault, case_of(fault.fault), "kernels/cuda/prefill");
  }
  EXPECT_EQ(count, 20);
}

TEST(PrefillFaults, TheHealthyKernelPassesTheSameCases) {
  for (const Fault fault : {Fault::none, Fault::prefill_hidden_value_kept}) {
    const FusedCase c = case_of(fault);
    const FusedRun run = run_fused(c, {simt::Order::random, 1}, planted_kernels(Fault::none));
    EXPECT_TRUE(run.defects.empty()) << run.first_defect();
    EXPECT_EQ(difference(c, run), "");
    EXPECT_EQ(run.counters.bank_conflicts, 0);
  }
}

}  // namespace
}  // namespace kvcheck::kernels::device
