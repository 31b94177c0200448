// Stores by number, and one of them in words.
#include "kernels/simt/store_log.h"

#include <fmt/format.h>

#include "kernels/simt/symbols.h"

namespace kvcheck::kernels::simt {
namespace {

bool same_place(const StoreLog::Record& a, const StoreLog::Record& b) {
  return a.code == b.code && a.site.line() == b.site.line() &&
         a.site.file_name() == b.site.file_name();
}

}  // namespace

std::string kernel_words(const void* kernel) {
  const std::string name = function_name(kernel);
  return name.empty() ? "" : fmt::format("{} ({})", name, to_string(place_of_function(kernel)));
}

void StoreLog::begin_launch(const void* kernel, device::Index3 grid) {
  launches_.push_back({kernel, grid});
}

StoreLog::Thread& StoreLog::thread_of(std::int64_t block, int thread) {
  Thread& of = threads_[static_cast<std::size_t>(thread)];
  const auto launch = static_cast<std::uint32_t>(launches_.size());
  if (of.launch != launch || of.block != block) of = {launch, block, 0, 0};
  return of;
}

void StoreLog::note_read(std::int64_t block, int thread, std::uint32_t number) {
  thread_of(block, thread).read = number;
}

std::uint32_t StoreLog::number(const Record& record) {
  Thread& of = thread_of(record.block, record.thread);
  if (of.stored != 0) {
    const Entry& last = entries_[of.stored - 1];
    if (last.source == of.read && same_place(last.record, record)) return of.stored;
  }
  entries_.push_back({record, of.launch, of.read});
  of.stored = static_cast<std::uint32_t>(entries_.size());
  return of.stored;
}

LastStore StoreLog::at(std::uint32_t number) const {
  const auto& [record, launch, source] = entries_[number - 1];
  LastStore store;
  store.place = record.site.line() > 0 ? place_of(record.site) : place_of(record.code);
  store.launch = launch;
  store.thread = record.thread;
  if (launch == 0) return store;  // A monitor without a queue: no launch was announced.
  const auto& [kernel, grid] = launches_[launch - 1];
  store.kernel = kernel_words(kernel);
  const auto block = static_cast<std::uint64_t>(record.block);
  store.block = {static_cast<std::uint32_t>(block % grid.x),
                 static_cast<std::uint32_t>(block / grid.x % grid.y),
                 static_cast<std::uint32_t>(block / grid.x / grid.y)};
  return store;
}

std::string LastStore::words() const {
  return fmt::format("{} by thread {} of block ({},{},{}){}, launch {}", to_string(place), thread,
                     block.x, block.y, block.z, kernel.empty() ? "" : " of " + kernel, launch);
}

}  // namespace kvcheck::kernels::simt
