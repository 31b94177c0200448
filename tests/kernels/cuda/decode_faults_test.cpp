// Every planted fault of decode, decode_matrix and merge is caught by the check that its entry
// names, at a line of these kernels.
#include <gtest/gtest.h>

#include "tests/kernels/cuda/fused_checks.h"

namespace kvcheck::kernels::device {
namespace {

/// What every fault of decode needs: several queries with a window, splits of which some are empty,
/// warps without tiles, sinks, tails in the last tile.
FusedCase rich_case() {
  FusedCase c;
  c.kernel = &KernelTable::decode;
  c.query_heads = 4;
  c.kv_heads = 2;
  c.head_size = 56;
  c.value_head_size = 48;
  c.window = 100;
  c.largest_query = 8;
  c.sinks = true;
  c.split_positions = 64;
  c.entries = {{.live = 171, .origin = 167, .queries = 3, .capacity = 176},
               {.live = 30, .origin = 29, .queries = 1, .capacity = 32}};
  return c;
}

FusedCase case_of(Fault fault) {
  FusedCase c = rich_case();
  switch (fault) {
    case Fault::decode_narrow_position:
      c.entries = {{.first_position = std::int64_t{1} << 33,
                    .live = 60,
                    .origin = (std::int64_t{1} << 33) + 59,
                    .queries = 1,
                    .capacity = 60}};
      break;
    case Fault::decode_first_window:
      c.largest_query = 1;
      c.window = 8;
      break;
    case Fault::decode_stage_reuse:
    case Fault::matrix_stage_reuse:
      // Several tiles for the one warp.
      c.window = -1;
      c.split_positions = 0;
      c.threads = 32;
      break;
    case Fault::decode_tail:
      c.window = -1;
      break;
    case Fault::matrix_hidden_value:
      c.infinite_position = 168;
      break;
    default:
      break;
  }
  return c;
}

FusedCase case_of(const DeviceFault& fault) {
  FusedCase c = case_of(fault.fault);
  c.int8_cache = fault.int8_cache;
  if (c.int8_cache) c.head_size = 48;  // Rows of int8 are whole packets of 16 bytes.
  if (fault.kernel == "decode_matrix") {
    c.kernel = &KernelTable::decode_matrix;
    c.query_heads = 16;
  }
  return c;
}

TEST(DecodeFaults, EachIsCaught) {
  int count = 0;
  for (const DeviceFault& fault : device_faults()) {
    if (fault.kernel != "decode" && fault.kernel != "decode_matrix") continue;
    ++count;
    expect_caught(fault, case_of(fault), "kernels/cuda/");
  }
  EXPECT_EQ(count, 19);
}

TEST(DecodeFaults, TheHealthyKernelsPassTheSameCases) {
  for (const DeviceFault& fault : device_faults()) {
    if (fault.kernel != "decode" && fault.kernel != "decode_matrix") continue;
    const FusedCase c = case_of(fault);
    const FusedRun run = run_fused(c, {simt::Order::random, 1}, planted_kernels(Fault::none));
    EXPECT_TRUE(run.defects.empty()) << fault.name << ": " << run.first_defect();
    EXPECT_EQ(difference(c, run), "") << fault.name;
    EXPECT_EQ(run.counters.bank_conflicts, 0) << fault.name;
  }
}

}  // namespace
}  // namespace kvcheck::kernels::device
