// The list of planted faults; and each fault of append, move and unfused attention is caught by
// what its entry names, under every order of threads, at a line of its kernel where a check does
// it.
#include "kernels/cuda/planted.h"

#include <algorithm>
#include <iostream>
#include <set>

#include "tests/kernels/cuda/append_case.h"
#include "tests/kernels/cuda/move_case.h"
#include "tests/kernels/cuda/unfused_case.h"

namespace kvcheck::kernels::device {
namespace {

/// "data_race" of DefectKind::data_race.
std::string name_of(simt::DefectKind kind) {
  std::string name(to_string(kind));
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
}

/// What one run shows of a fault; empty where it shows nothing of what is named.
std::string shown(const DeviceFault& fault, const std::vector<simt::Defect>& defects,
                  const std::string& wrong) {
  if (fault.caught_by == "rows" || fault.caught_by == "values") return wrong;
  for (const simt::Defect& defect : defects) {
    if (name_of(defect.kind) != fault.caught_by) continue;
    // Nobody wrote what was not written, so that there is no line.
    const bool placed = defect.place.line > 0 &&
                        defect.place.file == "kernels/cuda/" + std::string(fault.kernel) + ".cuh";
    if (placed || defect.kind == simt::DefectKind::not_written) return defect.sentence();
  }
  return "";
}

bool is_copy(const DeviceFault& fault) {
  return fault.kernel == "append" || fault.kernel == "move" || fault.kernel == "unfused";
}

/// The first thing that the cases of the fault's kernel show under one order.
std::string caught(const DeviceFault& fault, simt::Order order) {
  const KernelTable table = planted_kernels(fault.fault);
  const auto rows = [&](const auto& one, const Outcome& found, const auto& expected) {
    return shown(fault, found.defects, found.bytes == expected(one) ? "" : "rows differ");
  };
  if (fault.kernel == "append") {
    for (const AppendCase& one : append_cases()) {
      const std::string is = rows(one, run_append(one, table, order), expected_append);
      if (!is.empty()) return is;
    }
  } else if (fault.kernel == "move") {
    for (const MoveCase& one : move_cases()) {
      const std::string is = rows(one, run_move(one, table, order), expected_move);
      if (!is.empty()) return is;
    }
  } else {
    for (const AttentionCase& one : attention_cases()) {
      const AttentionOutcome found = run_unfused(one, table, order);
      const std::string is = shown(fault, found.defects, difference(one, found));
      if (!is.empty()) return is;
    }
  }
  return "";
}

TEST(PlantedFaults, OfRowsAndUnfusedAttentionAreCaughtUnderEveryOrder) {
  int count = 0;
  for (const DeviceFault& fault : device_faults()) {
    if (!is_copy(fault)) continue;
    ++count;
    for (const simt::Order order : kAllOrders) {
      const std::string how = caught(fault, order);
      EXPECT_FALSE(how.empty()) << fault.name << " (" << fault.statement << ") under "
                                << to_string(order);
      if (order == simt::Order::lockstep) std::cout << fault.name << ": " << how << '\n';
    }
  }
  EXPECT_EQ(count, 20);
}

TEST(PlantedFaults, NumbersStayRightWhereACheckAloneCanSee) {
  // Every defect but these leaves the outputs right in lockstep: tests of values would pass.
  for (const Fault fault : {Fault::append_written_twice, Fault::unfused_written_twice}) {
    const KernelTable table = planted_kernels(fault);
    for (const AppendCase& one : append_cases()) {
      EXPECT_TRUE(run_append(one, table, simt::Order::lockstep).bytes == expected_append(one));
    }
    for (const AttentionCase& one : attention_cases()) {
      EXPECT_EQ(difference(one, run_unfused(one, table, simt::Order::lockstep)), "");
    }
  }
}

TEST(PlantedFaults, TheListHasEachFaultOnceInOrder) {
  std::set<std::string_view> names;
  Fault last = Fault::none;
  for (const DeviceFault& fault : device_faults()) {
    EXPECT_LT(last, fault.fault) << fault.name;
    last = fault.fault;
    EXPECT_TRUE(names.insert(fault.name).second) << fault.name;
    EXPECT_FALSE(fault.statement.empty()) << fault.name;
  }
}

TEST(PlantedFaults, EachChangesOneLaunchOfTheTable) {
  const KernelTable& healthy = simt_kernels();
  for (const DeviceFault& fault : device_faults()) {
    const KernelTable table = planted_kernels(fault.fault);
    const int changed = (table.append != healthy.append) + (table.move != healthy.move) +
                        (table.unfused != healthy.unfused) + (table.decode != healthy.decode) +
                        (table.decode_matrix != healthy.decode_matrix) +
                        (table.prefill != healthy.prefill);
    EXPECT_GE(changed, 1) << fault.name;
  }
  EXPECT_EQ(planted_kernels(Fault::none).append, healthy.append);
}

}  // namespace
}  // namespace kvcheck::kernels::device
