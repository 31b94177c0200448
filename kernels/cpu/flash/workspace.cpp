// Working memory of one thread.
#include "kernels/cpu/flash/workspace.h"

#include <array>
#include <utility>

namespace kvcheck::kernels::flash {
namespace {

/// The floats of a part as whole cache lines, in bytes.
constexpr std::int64_t line_bytes(std::int64_t floats) { return (floats + 15) / 16 * 64; }

/// Memory that the last workspace of this thread has left. Sessions are opened and closed by the
/// thousand in a search, and short steps need little time beside making and clearing it.
Arena& spare() {
  thread_local Arena memory;
  return memory;
}
constexpr std::size_t kMostSpare = std::size_t{1} << 20;

Arena memory_of(std::size_t bytes, Content content) {
  if (content == Content::zero || spare().size() < bytes) return Arena(bytes);
  return std::move(spare());
}

}  // namespace

Workspace::Workspace(const UnitShape& shape, Content content) {
  const std::int64_t of_rows = shape.rows * 2;  // 8 bytes each.
  const std::array<std::int64_t, 9> floats{shape.rows * kTile,
                                           kTile * shape.key_lanes,
                                           kTile * shape.output_lanes,
                                           shape.rows * shape.key_lanes,
                                           shape.partial_floats(),
                                           shape.partial_floats(),
                                           of_rows,
                                           of_rows,
                                           of_rows};
  for (const std::int64_t count : floats) bytes_ += static_cast<std::size_t>(line_bytes(count));
  memory_ = memory_of(bytes_, content);
  std::array<std::byte*, floats.size()> parts;
  std::byte* at = memory_.data();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    parts[i] = at;
    at += line_bytes(floats[i]);
  }
  const auto numbers = [&](std::size_t part) { return reinterpret_cast<float*>(parts[part]); };
  const auto rows = static_cast<std::size_t>(shape.rows);
  scratch = {numbers(0), reinterpret_cast<std::uint64_t*>(parts[6]), numbers(1), numbers(2)};
  query = numbers(3);
  chunk = partial_at(numbers(4), shape);
  merged = partial_at(numbers(5), shape);
  begin = {reinterpret_cast<std::int64_t*>(parts[7]), rows};
  end = {reinterpret_cast<std::int64_t*>(parts[8]), rows};
}

Workspace::~Workspace() {
  if (memory_.size() > spare().size() && memory_.size() <= kMostSpare) spare() = std::move(memory_);
}

}  // namespace kvcheck::kernels::flash
