// Instructions keep their numbers, however many there are.
#include "kernels/simt/sites.h"

#include <gtest/gtest.h>

namespace kvcheck::kernels::simt {
namespace {

TEST(Sites, NumbersStay) {
  Sites sites;
  std::vector<std::uint32_t> numbers;
  for (std::uintptr_t code = 1; code <= 5000; ++code) {
    numbers.push_back(sites.number(code * 5, {}, Traffic::shared));
  }
  for (std::uintptr_t code = 1; code <= 5000; ++code) {
    EXPECT_EQ(sites.number(code * 5, {}, Traffic::shared), numbers[code - 1]);
    EXPECT_EQ(numbers[code - 1], code);
    EXPECT_EQ(sites[numbers[code - 1]].code, code * 5);
  }
}

TEST(Sites, TrafficAndLinesAreApart) {
  Sites sites;
  const std::uint32_t load = sites.number(64, {}, Traffic::global_load);
  EXPECT_NE(sites.number(64, {}, Traffic::shared), load);
  const Site here = Site::current();
  const Site there = Site::current();
  const std::uint32_t first = sites.number(0, here, Traffic::shared);
  EXPECT_NE(sites.number(0, there, Traffic::shared), first);
  EXPECT_EQ(sites.number(0, here, Traffic::shared), first);
}

TEST(Sites, ThoseTooManyShareANumber) {
  Sites sites;
  for (std::uintptr_t code = 1; code < Cell::kMostSites; ++code) {
    ASSERT_EQ(sites.number(code, {}, Traffic::shared), code);
  }
  EXPECT_EQ(sites.number(Cell::kMostSites, {}, Traffic::shared), 0u);
  EXPECT_EQ(sites.number(1, {}, Traffic::shared), 1u);
}

}  // namespace
}  // namespace kvcheck::kernels::simt
