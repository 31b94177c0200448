// Working memory of one thread: parts of the right size, aligned, and apart from each other.
#include "kernels/cpu/flash/workspace.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace kvcheck::kernels::flash {
namespace {

using Part = std::pair<const float*, std::int64_t>;

std::vector<Part> parts_of(const Partial& partial, const UnitShape& shape) {
  return {{partial.maximum, shape.rows},
          {partial.sums, shape.rows * kSumLanes},
          {partial.output, shape.rows * shape.output_lanes}};
}

TEST(PartialParts, LieOneAfterTheOtherInTheirFloats) {
  const UnitShape shape{6, 8, 32};
  EXPECT_GE(shape.partial_floats(), 6 * (1 + 16 + 32));
  std::vector<float> memory(static_cast<std::size_t>(shape.partial_floats()));
  const Partial partial = partial_at(memory.data(), shape);
  EXPECT_EQ(partial.output, memory.data());
  EXPECT_EQ(partial.sums, memory.data() + 6 * 32);
  EXPECT_EQ(partial.maximum, memory.data() + 6 * (16 + 32));
  // Maxima are read a vector at a time, so one more lies behind the last of them.
  EXPECT_GE(memory.data() + memory.size(), partial.maximum + 6 + 15);
}

TEST(Workspace, PartsAreApartAndAligned) {
  for (const UnitShape shape : {UnitShape{2, 8, 16}, UnitShape{10, 40, 48}, {128, 128, 128}}) {
    Workspace work(shape);
    std::vector<Part> parts = {{work.scratch.logits, shape.rows * kTile},
                               {work.scratch.keys, kTile * shape.key_lanes},
                               {work.scratch.values, kTile * shape.output_lanes},
                               {work.query, shape.rows * shape.key_lanes}};
    for (const Part& part : parts) {
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(part.first) % 64, 0u);
    }
    for (const Partial* partial : {&work.chunk, &work.merged}) {
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(partial->output) % 64, 0u);
      const std::vector<Part> more = parts_of(*partial, shape);
      parts.insert(parts.end(), more.begin(), more.end());
    }
    std::sort(parts.begin(), parts.end());
    std::int64_t floats = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      floats += parts[i].second;
      if (i + 1 < parts.size()) {
        EXPECT_LE(parts[i].first + parts[i].second, parts[i + 1].first);
      }
    }
    // All of it, the bits of visible keys and the ranges of rows; little is lost between the parts.
    const std::int64_t bytes = floats * 4 + shape.rows * 3 * 8;
    EXPECT_GE(work.bytes(), bytes);
    EXPECT_LE(work.bytes(), bytes + 11 * 64);
    EXPECT_EQ(static_cast<std::int64_t>(work.begin.size()), shape.rows);
    EXPECT_EQ(static_cast<std::int64_t>(work.end.size()), shape.rows);
    std::fill_n(work.scratch.visible, shape.rows, 1);
  }
}

TEST(Workspace, OneAfterTheOtherShareTheirMemory) {
  const UnitShape large{10, 40, 48}, small{2, 8, 16};
  const float* memory = nullptr;
  {
    Workspace work(large);
    memory = work.scratch.logits;
    std::fill_n(work.scratch.logits, large.rows * kTile, 7.0f);
  }
  {
    Workspace work(small);
    EXPECT_EQ(work.scratch.logits, memory);
    EXPECT_EQ(work.scratch.logits[0], 7);
    // Two at a time do not.
    const Workspace other(small);
    EXPECT_NE(other.scratch.logits, memory);
  }
  const Workspace zeroed(small, Content::zero);
  EXPECT_EQ(zeroed.scratch.logits[0], 0);
}

}  // namespace
}  // namespace kvcheck::kernels::flash
