#include "kernels/bench/memory.h"

#include <vector>

#include <gtest/gtest.h>

namespace kvcheck::kernels::bench {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

std::int64_t growth_of(std::size_t mebibytes) {
  return peak_growth([&] {
    std::vector<char> taken(mebibytes << 20, 1);
    asm volatile("" : : "r"(taken.data()) : "memory");
  });
}

TEST(Memory, SeesWhatIsTakenAndGivenBack) {
  if (growth_of(32) == 0) GTEST_SKIP() << "this system does not tell";
  for (int i = 0; i < 2; ++i) {
    EXPECT_GE(growth_of(32), 31 * kMiB) << i;
    EXPECT_LE(growth_of(32), 36 * kMiB) << i;
  }
}

TEST(Memory, NothingTakenIsAlmostNoGrowth) { EXPECT_LE(growth_of(0), 2 * kMiB); }

}  // namespace
}  // namespace kvcheck::kernels::bench
