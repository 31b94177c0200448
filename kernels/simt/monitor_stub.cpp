// Stands in for the checks until they are there.
#include <utility>

#include "kernels/simt/thread.h"

namespace kvcheck::kernels::simt {

constinit thread_local Running running;

struct Monitor::State {
  std::vector<Defect> defects;
  Counters counters;
};
Monitor::Monitor(const Checks&, const device::LaunchShape&, GlobalMemory&)
    : state_(std::make_unique<State>()) {}
Monitor::~Monitor() = default;
void Monitor::begin_block(std::int64_t, std::span<std::byte>) {}
void Monitor::end_block() {}
void Monitor::block_barrier() { ++state_->counters.block_barriers; }
void Monitor::warp_barrier(int, std::uint32_t) {}
bool Monitor::access(int, const Access&) { return true; }
bool Monitor::copy_begins(int, const void*, const void*, std::size_t, std::uintptr_t, Site) {
  return true;
}
void Monitor::copy_ends(int, const void*) {}
void Monitor::count_matrix_product() { ++state_->counters.matrix_products; }
void Monitor::report(Defect defect) { state_->defects.push_back(std::move(defect)); }
std::vector<Defect> Monitor::finish() { return std::move(state_->defects); }
const Counters& Monitor::counters() const { return state_->counters; }

void Counters::add(const Counters& other) {
  block_barriers += other.block_barriers;
  matrix_products += other.matrix_products;
}

void note_access(const Access& access) {
  if (running.thread == nullptr) return;
  maybe_yield();
  if (!running.thread->monitor->access(running.thread->index, access)) running.give_up();
}

std::string repository_path(std::string_view path) {
  const std::size_t at = path.rfind("/kernels/");
  return std::string(at == std::string_view::npos ? path : path.substr(at + 1));
}
SourcePlace place_of(Site site) { return {repository_path(site.file_name()), site.line(), 0}; }

GlobalMemory::GlobalMemory() = default;
GlobalMemory::~GlobalMemory() = default;

}  // namespace kvcheck::kernels::simt
