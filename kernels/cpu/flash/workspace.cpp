// Working memory of one thread.
#include "kernels/cpu/flash/workspace.h"

namespace kvcheck::kernels::flash {
namespace {

/// Floats of the parts, one after the other, each a whole number of cache lines.
constexpr std::int64_t lines(std::int64_t floats) { return (floats + 15) / 16 * 16; }

}  // namespace

Workspace::Workspace(const UnitShape& shape)
    : begin(static_cast<std::size_t>(shape.rows)),
      end(static_cast<std::size_t>(shape.rows)),
      visible_(static_cast<std::size_t>(shape.rows)) {
  const std::int64_t sizes[] = {shape.rows * kTile,         kTile * shape.key_lanes,
                                kTile * shape.output_lanes, shape.rows * shape.key_lanes,
                                shape.partial_floats(),     shape.partial_floats()};
  std::int64_t floats = 0;
  for (const std::int64_t size : sizes) floats += lines(size);
  memory_ = Arena(static_cast<std::size_t>(floats) * sizeof(float));
  auto* at = reinterpret_cast<float*>(memory_.data());
  float* parts[6];
  for (int i = 0; i < 6; ++i) {
    parts[i] = at;
    at += lines(sizes[i]);
  }
  scratch = {parts[0], visible_.data(), parts[1], parts[2]};
  query = parts[3];
  chunk = partial_at(parts[4], shape);
  merged = partial_at(parts[5], shape);
}

std::int64_t Workspace::bytes() const {
  return static_cast<std::int64_t>(memory_.size() +
                                   (begin.size() + end.size()) * sizeof(std::int64_t) +
                                   visible_.size() * sizeof(std::uint64_t));
}

}  // namespace kvcheck::kernels::flash
