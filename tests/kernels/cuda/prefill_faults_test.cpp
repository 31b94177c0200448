// Every planted fault of prefill is caught by the check that its entry names.
#include <algorithm>

#include <gtest/gtest.h>

#include "tests/kernels/cuda/prefill_case.h"

namespace kvcheck::kernels::device {
namespace {

/// A problem that has what every fault needs: several tiles and blocks, a window, lanes that fill
/// no tile, a batch whose last block is not full, queries at other places than the end.
PrefillCase rich_case() {
  PrefillCase c;
  c.query_heads = 2;
  c.head_size = 56;
  c.value_head_size = 48;
  c.window = 100;
  c.largest_query = 8;
  c.entries = {{.live = 170, .origin = 90, .queries = 70, .capacity = 176},
               {.live = 30, .origin = 5, .queries = 9, .capacity = 32}};
  return c;
}

PrefillCase case_of(Fault fault) {
  PrefillCase c = rich_case();
  if (fault == Fault::prefill_rows_past_the_end) c.entries.pop_back();
  if (fault == Fault::prefill_hidden_value_kept) c.mask = MaskKind::boolean;
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
  if (fault.caught_by == "bank_conflicts") return run.counters.bank_conflicts > 0;
  return std::any_of(run.defects.begin(), run.defects.end(), [&](const simt::Defect& defect) {
    why = defect.sentence();
    return name_of(defect.kind) == fault.caught_by && defect.place.line > 0 &&
           defect.place.file.find("kernels/cuda/prefill") == 0;
  });
}

TEST(PrefillFaults, EachIsCaught) {
  int count = 0;
  for (const DeviceFault& fault : device_faults()) {
    if (fault.kernel != "prefill") continue;
    ++count;
    const PrefillCase c = case_of(fault.fault);
    const KernelTable table = planted_kernels(fault.fault);
    bool found = false;
    std::string why;
    for (const simt::Order order :
         {simt::Order::lockstep, simt::Order::random, simt::Order::reverse, simt::Order::priority,
          simt::Order::starve}) {
      found = found || caught(fault, c, run_prefill(c, {order, 1}, table), why);
    }
    EXPECT_TRUE(found) << fault.name << ", by " << fault.caught_by << ": " << why;
  }
  EXPECT_EQ(count, 20);
}

TEST(PrefillFaults, TheHealthyKernelPassesTheSameCases) {
  for (const Fault fault : {Fault::none, Fault::prefill_hidden_value_kept}) {
    const PrefillCase c = case_of(fault);
    const PrefillRun run = run_prefill(c, {simt::Order::random, 1}, planted_kernels(Fault::none));
    EXPECT_TRUE(run.defects.empty()) << run.first_defect();
    EXPECT_EQ(difference(c, run), "");
    EXPECT_EQ(run.counters.bank_conflicts, 0);
  }
}

}  // namespace
}  // namespace kvcheck::kernels::device
