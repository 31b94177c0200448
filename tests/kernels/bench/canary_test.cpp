#include "kernels/bench/canary.h"

#include <cmath>

#include <gtest/gtest.h>

namespace kvcheck::kernels::bench {
namespace {

TEST(Canary, RatesAreNumbersAboveZero) {
  const double fma = fma_rate(0);
  EXPECT_TRUE(std::isfinite(fma));
  EXPECT_GT(fma, 0);
  ReadCanary read(100000);
  const double rate = read.rate(0);
  EXPECT_TRUE(std::isfinite(rate));
  EXPECT_GT(rate, 0);
}

TEST(Canary, BuffersAreWholeBlocks) {
  EXPECT_EQ(ReadCanary(0).bytes(), 256u);
  EXPECT_EQ(ReadCanary(256).bytes(), 256u);
  EXPECT_EQ(ReadCanary(257).bytes(), 512u);
  EXPECT_EQ(ReadCanary((2u << 20) + 1).bytes(), (2u << 20) + 256);
}

}  // namespace
}  // namespace kvcheck::kernels::bench
