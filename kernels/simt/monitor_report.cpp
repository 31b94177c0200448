// What the checks of an access found, in words.
#include <bit>
#include <utility>

#include <fmt/format.h>

#include "kernels/simt/monitor_state.h"

namespace kvcheck::kernels::simt {
namespace {

std::string_view verb(const Step& step) {
  return step.atomic ? "updated" : step.write ? "written" : "read";
}

std::uintptr_t code_key(const Sites::Entry& entry) {
  if (entry.code != 0) return entry.code;
  return reinterpret_cast<std::uintptr_t>(entry.site.file_name()) +
         static_cast<std::uintptr_t>(entry.site.line());
}

std::string quoted(const std::string& name) { return "'" + name + "'"; }

/// The line where it was given; otherwise it is looked up at the end.
SourcePlace place(const Sites::Entry& entry) {
  SourcePlace result = place_of(entry.site);
  result.code = entry.code;
  return result;
}

}  // namespace

bool Monitor::State::wants(DefectKind kind, const Step& step, std::uint32_t other) {
  return found.wants(kind, code_key(sites[step.site]), other == 0 ? 0 : code_key(sites[other]));
}

void Monitor::State::add(DefectKind kind, const Step& step, Cell earlier, std::string detail) {
  Defect defect;
  defect.kind = kind;
  defect.place = place(sites[step.site]);
  defect.block = block;
  defect.thread = step.thread;
  if (earlier.stamp != 0) {
    defect.other = place(sites[earlier.site()]);
    defect.other_thread = earlier.thread();
  }
  defect.detail = std::move(detail);
  found.add(std::move(defect));
}

void Monitor::State::report(DefectKind kind, const Step& step, const std::string& detail) {
  if (wants(kind, step, 0)) add(kind, step, {}, detail);
}

void Monitor::State::report_race(const Step& step, const Race& race, const Region* region,
                                 std::size_t word, std::uint32_t mask) {
  const Cell earlier = race.earlier;
  if (!wants(DefectKind::data_race, step, earlier.site())) return;
  const std::uint32_t both = earlier.mask() & mask;
  const std::size_t byte = word * 4 + static_cast<std::size_t>(std::countr_zero(both));
  const std::string_view before = !race.wrote ? "read" : earlier.atomic() ? "updated" : "written";
  const std::int64_t where = order.block_at(earlier.stamp);
  const std::string others = where == block ? "" : fmt::format(" of block {}", where);
  const std::size_t of = region == nullptr ? shared_bytes : region->bytes;
  const std::string memory_name =
      region == nullptr ? "shared memory" : quoted(region->allocation.name);
  add(DefectKind::data_race, step, earlier,
      fmt::format("byte {} of the {} of {}, {} by thread {}{}, then {} by thread {}", byte, of,
                  memory_name, before, earlier.thread(), others, verb(step), step.thread));
}

void Monitor::State::report_shared_mark(const Step& step, std::size_t word, std::uint32_t mask) {
  const Mark mark = memory.shared_marks[word];
  const std::uint32_t in_flight = mark >> 4 & mask;
  if (in_flight != 0) {
    const Cell copy = memory.shared_words[word].write;
    if (!wants(DefectKind::copy_in_flight, step, copy.site())) return;
    add(DefectKind::copy_in_flight, step, copy,
        fmt::format("shared byte {} of {} is {} while a copy to it by thread {} is under way",
                    word * 4 + static_cast<std::size_t>(std::countr_zero(in_flight)), shared_bytes,
                    verb(step), copy.thread()));
    return;
  }
  if (!wants(DefectKind::uninitialised_read, step, 0)) return;
  const std::uint32_t missing = ~mark & mask;
  add(DefectKind::uninitialised_read, step, {},
      fmt::format("shared byte {} of {} holds nothing yet",
                  word * 4 + static_cast<std::size_t>(std::countr_zero(missing)), shared_bytes));
}

void Monitor::State::report_global_mark(const Step& step, const Region& region, std::size_t word,
                                        std::uint32_t mask) {
  const Mark mark = region.mark()[word];
  const std::string name = quoted(region.allocation.name);
  if (!step.write) {
    if (!wants(DefectKind::uninitialised_read, step, 0)) return;
    const std::uint32_t missing = ~(mark | mark >> 4) & mask;
    add(DefectKind::uninitialised_read, step, {},
        fmt::format("byte {} of the {} of {} holds nothing yet",
                    word * 4 + static_cast<std::size_t>(std::countr_zero(missing)), region.bytes,
                    name));
    return;
  }
  Cell earlier = region.word()[word].write;
  if (earlier.stamp <= order.launch_begin() || (earlier.mask() & mask) == 0) {
    earlier = region.word()[word].write_before;
  }
  if (earlier.stamp <= order.launch_begin()) earlier = {};
  if (!wants(DefectKind::written_twice, step, earlier.site())) return;
  const std::uint32_t again = mark & mask;
  add(DefectKind::written_twice, step, earlier,
      fmt::format("byte {} of the {} of {} was written by this launch before, by thread {} of "
                  "block {}",
                  word * 4 + static_cast<std::size_t>(std::countr_zero(again)), region.bytes, name,
                  earlier.thread(), order.block_at(earlier.stamp)));
}

void Monitor::State::report_outside(const Step& step) {
  if (!wants(DefectKind::out_of_bounds, step, 0)) return;
  const std::uintptr_t end = step.address + step.bytes;
  std::string where;
  const auto describe = [&](std::uintptr_t begin, std::size_t bytes, const std::string& name) {
    if (step.address < begin) {
      where =
          fmt::format("begins {} bytes before {} of {} bytes", begin - step.address, name, bytes);
    } else {
      where =
          fmt::format("ends {} bytes behind {} of {} bytes", end - (begin + bytes), name, bytes);
    }
  };
  // What lies within a few rows of shared memory was most likely meant for it.
  constexpr std::uintptr_t kNear = 4096;
  const bool near_shared = shared_bytes != 0 && end + kNear > shared_begin &&
                           step.address < shared_begin + shared_bytes + kNear;
  const Allocation* const nearest =
      allocations.nearest(reinterpret_cast<const void*>(step.address));
  if (near_shared) {
    describe(shared_begin, shared_bytes, "the shared memory");
  } else if (nearest != nullptr) {
    describe(reinterpret_cast<std::uintptr_t>(nearest->data), nearest->bytes,
             quoted(nearest->name));
  } else {
    where = "is in no allocation; there is none";
  }
  add(DefectKind::out_of_bounds, step, {},
      fmt::format("an access of {} bytes {}", step.bytes, where));
}

}  // namespace kvcheck::kernels::simt
