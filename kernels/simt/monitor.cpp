// The checks of each access.
#include "kernels/simt/monitor.h"

#include <algorithm>
#include <utility>

#include "kernels/simt/monitor_state.h"

namespace kvcheck::kernels::simt {
namespace {

constexpr std::uint32_t kMostThreads = 1024;

std::uintptr_t number_of(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

int warps_of(const device::LaunchShape& shape) {
  return static_cast<int>((std::min(shape.threads, kMostThreads) + 31) / 32);
}

}  // namespace

Monitor::State::State(const Checks& chosen, const device::LaunchShape& shape, GlobalMemory& global)
    : checks(chosen),
      allocations(global),
      memory(global.state()),
      order(memory.now, warps_of(shape)),
      groups(warps_of(shape), counters),
      found(chosen.most_defects) {}

bool Monitor::State::access(int thread, const Access& access) {
  if (!checks.memory || access.bytes == 0) return true;
  const std::uintptr_t address = number_of(access.address);
  const bool shared = address - shared_begin < shared_bytes;
  const Traffic traffic = shared         ? Traffic::shared
                          : access.write ? Traffic::global_store
                                         : Traffic::global_load;
  const Step step{thread,
                  address,
                  access.bytes,
                  access.write,
                  access.atomic,
                  access.unaligned,
                  sites.number(access.code, access.site, traffic)};
  return shared ? access_shared(step) : access_global(step);
}

void Monitor::State::check_alignment(const Step& step, std::size_t unit) {
  if ((step.address & (unit - 1)) == 0 || (unit & (unit - 1)) != 0) return;
  report(DefectKind::misaligned, step,
         "address is " + std::to_string(step.address % unit) + " bytes past a multiple of " +
             std::to_string(unit));
}

template <bool kWrite>
void Monitor::State::touch_shared(const Step& step, std::size_t offset) {
  const std::uint32_t fence = order.last_barrier();
  const Cell cell(order.now(), step.thread, step.atomic, step.site);
  Word* const words = memory.shared_words.data();
  Mark* const marks = memory.shared_marks.data();
  for_words(offset, step.bytes, [&](std::size_t index, std::uint32_t mask) {
    const Mark mark = marks[index];
    const std::uint32_t wanted = kWrite && !step.atomic ? 0 : mask;
    const bool in_flight = (mark & mask << 4) != 0;
    if (in_flight || (mark & wanted) != wanted) report_shared_mark(step, index, mask);
    if (kWrite) marks[index] = static_cast<Mark>(mark | mask);
    if (in_flight) return;
    const Race race = note(words[index], cell.with(mask), kWrite, fence, order);
    if (race.found()) report_race(step, race, nullptr, index, mask);
  });
}

bool Monitor::State::access_shared(const Step& step) {
  const std::size_t offset = step.address - shared_begin;
  if (step.bytes > shared_bytes - offset) {
    report_outside(step);
    return false;
  }
  if (!step.unaligned) check_alignment(step, step.bytes);
  if (checks.counters) groups.add(step.thread, step.site, Traffic::shared, offset, step.bytes);
  if (step.write) {
    touch_shared<true>(step, offset);
  } else {
    touch_shared<false>(step, offset);
  }
  return true;
}

bool Monitor::State::access_global(const Step& step) {
  Sites::Entry& entry = sites[step.site];
  if (entry.region == nullptr || !entry.region->holds(step.address, step.bytes)) {
    Region* const region = memory.find(step.address);
    if (region == nullptr || !region->holds(step.address, step.bytes)) {
      report_outside(step);
      return false;
    }
    entry.region = region;
  }
  Region& region = *entry.region;
  if (!step.unaligned) check_alignment(step, step.bytes);
  if (region.constant) {
    if (step.write) report(DefectKind::input_written, step, "read-only data of the program");
    return !step.write;
  }
  if (checks.counters) {
    const Traffic traffic = step.write ? Traffic::global_store : Traffic::global_load;
    groups.add(step.thread, step.site, traffic, step.address, step.bytes);
  }
  const std::size_t offset = step.address - region.begin;
  if (memory.log != nullptr) record(step, region, offset);
  if (region.allocation.use != Use::input) {
    access_words(step, region, offset);
  } else if (step.write && wants(DefectKind::input_written, step, 0)) {
    add(DefectKind::input_written, step, {},
        "byte " + std::to_string(offset) + " of '" + region.allocation.name + "'");
  }
  return true;
}

void Monitor::State::record(const Step& step, Region& region, std::size_t offset) {
  if (step.write) {
    const Sites::Entry& entry = sites[step.site];
    region.stores.resize(region.bytes);
    std::fill_n(region.stores.begin() + static_cast<std::ptrdiff_t>(offset), step.bytes,
                memory.log->number({entry.code, entry.site, block, step.thread}));
  } else if (region.allocation.use == Use::scratch && !region.stores.empty()) {
    memory.log->note_read(block, step.thread, region.stores[offset]);
  }
}

void Monitor::State::access_words(const Step& step, Region& region, std::size_t offset) {
  const Use use = region.allocation.use;
  const bool output = use == Use::output;
  const Cell cell(order.now(), step.thread, step.atomic, step.site);
  for_words(offset, step.bytes, [&](std::size_t index, std::uint32_t mask) {
    Word& word = region.word()[index];
    if (region.mark() != nullptr) {
      Mark& mark = region.mark()[index];
      const std::uint32_t known = mark | (output ? mark >> 4 : 0);
      const bool again = output && step.write && (mark & mask) != 0;
      const bool unknown = !step.write && (known & mask) != mask;
      if (again || unknown) report_global_mark(step, region, index, mask);
      if (step.write) mark |= static_cast<Mark>(mask);
    }
    const Race race = note(word, cell.with(mask), step.write, order.launch_begin(), order);
    if (race.found()) {
      report_race(step, race, &region, index, mask);
    }
  });
}

bool Monitor::State::copy_begins(int thread, std::uintptr_t shared, std::uintptr_t global,
                                 std::size_t bytes, std::uintptr_t code, Site site) {
  if (!checks.memory) return true;
  if (bytes > 0) {
    const Step step{
        thread, global, bytes, false, false, true, sites.number(code, site, Traffic::global_load)};
    check_alignment(step, kCopyBytes);
    if (!access_global(step)) return false;
  }
  const Step step{
      thread, shared, kCopyBytes, true, false, true, sites.number(code, site, Traffic::shared)};
  const std::size_t offset = shared - shared_begin;
  if (offset >= shared_bytes || kCopyBytes > shared_bytes - offset) {
    report_outside(step);
    return false;
  }
  check_alignment(step, kCopyBytes);
  if (checks.counters) groups.add(thread, step.site, Traffic::shared, offset, kCopyBytes);
  const Cell cell(order.now(), thread, false, step.site);
  for_words(offset, kCopyBytes, [&](std::size_t index, std::uint32_t mask) {
    Mark& mark = memory.shared_marks[index];
    if ((mark & mask << 4) != 0) report_shared_mark(step, index, mask);
    mark = static_cast<Mark>((mark & ~mask) | mask << 4);
    const Race race =
        note(memory.shared_words[index], cell.with(mask), true, order.last_barrier(), order);
    if (race.found()) report_race(step, race, nullptr, index, mask);
  });
  return true;
}

void Monitor::State::copy_ends(int thread, std::uintptr_t shared, std::uintptr_t global,
                               std::size_t bytes) {
  const std::size_t offset = shared - shared_begin;
  if (!checks.memory || offset >= shared_bytes || kCopyBytes > shared_bytes - offset) return;
  const std::uint32_t site = memory.shared_words[offset / 4].write.site();
  for_words(offset, kCopyBytes, [&](std::size_t index, std::uint32_t mask) {
    Mark& mark = memory.shared_marks[index];
    mark = static_cast<Mark>((mark & ~(mask << 4)) | mask);
    note(memory.shared_words[index], Cell(order.now(), thread, false, site).with(mask), true,
         order.last_barrier(), order);
  });
  if (bytes == 0) return;
  // The source may have been read as late as now.
  Region*& region = sites[site].region;
  if (region == nullptr || !region->holds(global, bytes)) region = memory.find(global);
  if (region == nullptr || region->word() == nullptr) return;
  access_words({thread, global, bytes, false, false, true, site}, *region, global - region->begin);
}

Monitor::Monitor(const Checks& checks, const device::LaunchShape& shape, GlobalMemory& memory) {
  if (checks.memory) memory.state().begin_launch(shape.shared_bytes);
  state_ = std::make_unique<State>(checks, shape, memory);
}

Monitor::~Monitor() { state_->memory.now = state_->order.now(); }

void Monitor::begin_block(std::int64_t block, std::span<std::byte> shared) {
  State& state = *state_;
  state.block = block;
  state.order.begin_block(block);
  if (!state.checks.memory) return;
  state.shared_begin = number_of(shared.data());
  state.shared_bytes = shared.size();
  const std::size_t words = (shared.size() + 3) / 4;
  state.memory.resize_shared(words);
  std::fill_n(state.memory.shared_marks.begin(), words, Mark{0});
}

void Monitor::end_block() { state_->groups.flush_all(); }

void Monitor::block_barrier() {
  ++state_->counters.block_barriers;
  state_->order.block_barrier();
  state_->groups.flush_all();
}

void Monitor::warp_barrier(int warp, std::uint32_t lanes) {
  state_->order.warp_barrier(warp, lanes);
  if (lanes == device::kAllLanes) state_->groups.flush(warp);
}

bool Monitor::access(int thread, const Access& access) { return state_->access(thread, access); }

bool Monitor::copy_begins(int thread, const void* shared, const void* global, std::size_t bytes,
                          std::uintptr_t code, Site site) {
  return state_->copy_begins(thread, number_of(shared), number_of(global), bytes, code, site);
}

void Monitor::copy_ends(int thread, const void* shared, const void* global, std::size_t bytes) {
  state_->copy_ends(thread, number_of(shared), number_of(global), bytes);
}

void Monitor::count_matrix_product() { ++state_->counters.matrix_products; }

void Monitor::report(Defect defect) { state_->found.add_once(std::move(defect)); }

std::vector<Defect> Monitor::finish() { return state_->found.take(); }

const Counters& Monitor::counters() const { return state_->counters; }

}  // namespace kvcheck::kernels::simt
