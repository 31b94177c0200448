#include "kernels/simt/access_groups.h"

#include <algorithm>

namespace kvcheck::kernels::simt {
namespace {

constexpr std::uint32_t kAll = 0xffffffffu;
constexpr std::size_t kWidest = 16;

}  // namespace

AccessGroups::AccessGroups(int warps, Counters& counters)
    : warps_(static_cast<std::size_t>(warps)), counters_(&counters) {}

void AccessGroups::add(int thread, std::uint32_t site, Traffic traffic, std::uint64_t address,
                       std::size_t bytes) {
  Warp& warp = warps_[static_cast<std::size_t>(thread) / 32];
  if (site >= warp.series.size()) warp.series.resize(site + 1);
  Series& series = warp.series[site];
  if (!series.touched) {
    series.touched = true;
    series.traffic = traffic;
    warp.touched.push_back(site);
  }
  const std::size_t lane = static_cast<std::size_t>(thread) % 32;
  for (; bytes > kWidest; bytes -= kWidest, address += kWidest) {
    add_piece(series, lane, address, kWidest);
  }
  add_piece(series, lane, address, static_cast<std::uint8_t>(bytes));
}

void AccessGroups::add_piece(Series& series, std::size_t lane, std::uint64_t address,
                             std::uint8_t bytes) {
  const std::uint32_t index = series.times[lane]++ - series.base;
  if (index == series.waiting.size()) series.waiting.emplace_back();
  WarpAccess& access = series.waiting[index];
  access.address[lane] = address;
  access.bytes[lane] = bytes;
  access.lanes |= 1u << lane;
  if (access.lanes != kAll) return;
  count(series.traffic, access);
  access.lanes = 0;
  // The other lanes passed the earlier ones too, so they are complete.
  series.first = series.base + index + 1;
  if (index + 1 == series.waiting.size()) {
    series.waiting.clear();
    series.base = series.first;
  }
}

void AccessGroups::flush(int number) {
  Warp& warp = warps_[static_cast<std::size_t>(number)];
  for (const std::uint32_t site : warp.touched) {
    Series& series = warp.series[site];
    for (std::size_t i = series.first - series.base; i < series.waiting.size(); ++i) {
      count(series.traffic, series.waiting[i]);
    }
    series.waiting.clear();
    series.times.fill(0);
    series.touched = false;
    series.first = series.base = 0;
  }
  warp.touched.clear();
}

void AccessGroups::flush_all() {
  for (std::size_t warp = 0; warp < warps_.size(); ++warp) flush(static_cast<int>(warp));
}

void AccessGroups::count(Traffic traffic, const WarpAccess& access) {
  if (traffic == Traffic::shared) {
    ++counters_->shared_accesses;
    counters_->bank_conflicts += bank_conflicts(access);
    return;
  }
  const Transfer moved = transfer(access);
  if (traffic == Traffic::global_load) {
    ++counters_->global_loads;
    counters_->global_load_bytes += moved.bytes;
    counters_->global_load_sectors += moved.sectors;
  } else {
    ++counters_->global_stores;
    counters_->global_store_bytes += moved.bytes;
    counters_->global_store_sectors += moved.sectors;
  }
}

}  // namespace kvcheck::kernels::simt
