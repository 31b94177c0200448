// Stores by number, and one of them in words.
#include "kernels/simt/store_log.h"

#include <fmt/format.h>

#include "kernels/simt/symbols.h"

namespace kvcheck::kernels::simt {

void StoreLog::begin_launch(const void* kernel, device::Index3 grid) {
  launches_.push_back({kernel, grid});
}

std::uint32_t StoreLog::number(Record record) {
  record.launch = static_cast<std::uint32_t>(launches_.size());
  std::uint32_t& latest = latest_[static_cast<std::size_t>(record.thread)];
  if (latest != 0) {
    const Record& last = records_[latest - 1];
    const bool same_line =
        last.site.file_name() == record.site.file_name() && last.site.line() == record.site.line();
    if (same_line && last.code == record.code && last.block == record.block &&
        last.launch == record.launch) {
      return latest;
    }
  }
  records_.push_back(record);
  latest = static_cast<std::uint32_t>(records_.size());
  return latest;
}

LastStore StoreLog::at(std::uint32_t number) const {
  const Record& record = records_[number - 1];
  LastStore store;
  store.place = record.site.line() > 0 ? place_of(record.site) : place_of(record.code);
  store.caller = outer_place_of(record.code);
  store.launch = record.launch;
  store.thread = record.thread;
  if (record.launch == 0) return store;  // A monitor without a queue: no launch was announced.
  const Launch& launch = launches_[record.launch - 1];
  store.kernel = function_name(launch.kernel);
  const auto block = static_cast<std::uint64_t>(record.block);
  store.block = {static_cast<std::uint32_t>(block % launch.grid.x),
                 static_cast<std::uint32_t>(block / launch.grid.x % launch.grid.y),
                 static_cast<std::uint32_t>(block / launch.grid.x / launch.grid.y)};
  return store;
}

std::string LastStore::sentence() const {
  const bool called =
      !caller.file.empty() && (caller.file != place.file || caller.line != place.line);
  return fmt::format("stored at {}{} by thread {} of block ({},{},{}){}, launch {}",
                     to_string(place), called ? ", called at " + to_string(caller) + "," : "",
                     thread, block.x, block.y, block.z, kernel.empty() ? "" : " of " + kernel,
                     launch);
}

}  // namespace kvcheck::kernels::simt
