// The checks of one launch.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "kernels/simt/access_groups.h"
#include "kernels/simt/defect_list.h"
#include "kernels/simt/global_state.h"
#include "kernels/simt/monitor.h"
#include "kernels/simt/shadow.h"
#include "kernels/simt/sites.h"

namespace kvcheck::kernels::simt {

/// An access while it is looked at.
struct Step {
  int thread;
  std::uintptr_t address;
  std::size_t bytes;
  bool write, atomic, unaligned;
  std::uint32_t site;
};

struct Monitor::State {
  State(const Checks& chosen, const device::LaunchShape& shape, GlobalMemory& global);

  const Checks checks;
  GlobalMemory& allocations;
  GlobalMemory::State& memory;
  Ordering order;
  Counters counters;
  AccessGroups groups;
  Sites sites;
  DefectList found;

  std::int64_t block = 0;
  std::uintptr_t shared_begin = 0;
  std::size_t shared_bytes = 0;

  bool access(int thread, const Access& access);
  bool copy_begins(int thread, std::uintptr_t shared, std::uintptr_t global, std::size_t bytes,
                   std::uintptr_t code, Site site);
  void copy_ends(int thread, std::uintptr_t shared, std::uintptr_t global, std::size_t bytes);

  // \return false where the access must not be made.
  bool access_shared(const Step& step);
  template <bool kWrite>
  void touch_shared(const Step& step, std::size_t offset);
  bool access_global(const Step& step);
  void check_alignment(const Step& step, std::size_t unit);
  /// Keeps a store, or what a thread reads of scratch, for GlobalMemory::last_store.
  void record(const Step& step, Region& region, std::size_t offset);
  void access_words(const Step& step, Region& region, std::size_t offset);

  // monitor_report.cpp: what is found, in words, unless it is known already.
  void report(DefectKind kind, const Step& step, const std::string& detail);
  /// \param region null for shared memory
  void report_race(const Step& step, const Race& race, const Region* region, std::size_t word,
                   std::uint32_t mask);
  /// Bytes of the block's shared memory that hold nothing, or that a copy is on its way to.
  void report_shared_mark(const Step& step, std::size_t word, std::uint32_t mask);
  /// Bytes of an output that this launch has written, or of scratch that nobody has.
  void report_global_mark(const Step& step, const Region& region, std::size_t word,
                          std::uint32_t mask);
  void report_outside(const Step& step);
  bool wants(DefectKind kind, const Step& step, std::uint32_t other);
  void add(DefectKind kind, const Step& step, Cell earlier, std::string detail);
};

/// Calls use(word, mask) for each 4-byte word that [offset, offset + bytes) touches; mask has a
/// bit for each byte of the word.
template <class Use>
void for_words(std::size_t offset, std::size_t bytes, Use use) {
  const std::size_t last = (offset + bytes - 1) / 4;
  const std::uint32_t behind = 0xfu >> (3 - (offset + bytes - 1) % 4);
  std::uint32_t mask = 0xfu << offset % 4 & 0xfu;
  for (std::size_t word = offset / 4; word < last; ++word, mask = 0xfu) use(word, mask);
  use(last, mask & behind);
}

}  // namespace kvcheck::kernels::simt
