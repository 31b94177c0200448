// Every planted fault of decode, decode_matrix and merge is caught by the check that its entry
// names, at a line of these kernels.
#include <algorithm>
#include <iostream>

#include <gtest/gtest.h>

#include "kernels/cuda/planted.h"
#include "tests/kernels/cuda/prefill_case.h"

namespace kvcheck::kernels::device {
namespace {

/// What every fault of decode needs: several queries with a window, splits of which some are empty,
/// warps without tiles, sinks, tails in the last tile.
PrefillCase rich_case() {
  PrefillCase c;
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

PrefillCase case_of(Fault fault) {
  PrefillCase c = rich_case();
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

PrefillCase case_of(const DeviceFault& fault) {
  PrefillCase c = case_of(fault.fault);
  c.int8_cache = fault.int8_cache;
  if (c.int8_cache) c.head_size = 48;  // Rows of int8 are whole packets of 16 bytes.
  if (fault.kernel == "decode_matrix") {
    c.kernel = &KernelTable::decode_matrix;
    c.query_heads = 16;
  }
  return c;
}

/// "data_race" of DefectKind::data_race.
std::string name_of(simt::DefectKind kind) {
  std::string name(to_string(kind));
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
}

bool caught(const DeviceFault& fault, const PrefillCase& c, const PrefillRun& run,
            std::string& why) {
  if (fault.caught_by == "values") {
    why = run.first_defect();
    if (why.empty()) why = difference(c, run);
    return run.defects.empty() && !why.empty();
  }
  if (fault.caught_by == "bank_conflicts") {
    why = std::to_string(run.counters.bank_conflicts) + " bank conflicts";
    return run.counters.bank_conflicts > 0;
  }
  return std::any_of(run.defects.begin(), run.defects.end(), [&](const simt::Defect& defect) {
    why = defect.sentence();
    const std::string& file = defect.place.file;
    return name_of(defect.kind) == fault.caught_by && defect.place.line > 0 &&
           file.rfind("kernels/cuda/", 0) == 0;
  });
}

TEST(DecodeFaults, EachIsCaught) {
  int count = 0;
  for (const DeviceFault& fault : device_faults()) {
    if (fault.kernel != "decode" && fault.kernel != "decode_matrix") continue;
    ++count;
    const PrefillCase c = case_of(fault);
    const KernelTable table = planted_kernels(fault.fault);
    bool found = false;
    std::string why;
    for (const simt::Order order :
         {simt::Order::lockstep, simt::Order::random, simt::Order::reverse, simt::Order::priority,
          simt::Order::starve}) {
      found = found || caught(fault, c, run_prefill(c, {order, 1}, table), why);
    }
    EXPECT_TRUE(found) << fault.name << ", by " << fault.caught_by << ": " << why;
    if (found) std::cout << fault.name << ": " << why << '\n';
  }
  EXPECT_EQ(count, 19);
}

TEST(DecodeFaults, TheHealthyKernelsPassTheSameCases) {
  for (const DeviceFault& fault : device_faults()) {
    if (fault.kernel != "decode" && fault.kernel != "decode_matrix") continue;
    const PrefillCase c = case_of(fault);
    const PrefillRun run = run_prefill(c, {simt::Order::random, 1}, planted_kernels(Fault::none));
    EXPECT_TRUE(run.defects.empty()) << fault.name << ": " << run.first_defect();
    EXPECT_EQ(difference(c, run), "") << fault.name;
    EXPECT_EQ(run.counters.bank_conflicts, 0) << fault.name;
  }
}

}  // namespace
}  // namespace kvcheck::kernels::device
