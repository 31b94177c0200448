// Rows of a mask of any rank, with dimensions of one and with missing columns.
#include <gtest/gtest.h>

#include "kernels/cpu/mask_rows.h"
#include "tests/kernels/cpu_sequence.h"

namespace kvcheck::kernels {
namespace {

/// A mask whose elements are 0, 1, 2, ...
Tensor counted(std::vector<std::int64_t> shape) {
  Numbers numbers;
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  for (std::int64_t i = 0; i < count; ++i) numbers.push_back(static_cast<double>(i));
  return tensor_of(ElementType::f32, std::move(shape), numbers);
}

/// Element 0 of the row of entry 1, head 2 and query 1.
double first_of_row(std::vector<std::int64_t> shape) {
  const Tensor mask = counted(std::move(shape));
  return MaskRows(mask).row(1, 2, 1).bias(0);
}

TEST(MaskRows, EveryRankReadsFromTheRight) {
  EXPECT_EQ(first_of_row({4}), 0);
  EXPECT_EQ(first_of_row({3, 4}), 4);
  EXPECT_EQ(first_of_row({3, 3, 4}), 12 * 2 + 4);
  EXPECT_EQ(first_of_row({2, 3, 3, 4}), 36 + 12 * 2 + 4);
}

TEST(MaskRows, DimensionsOfOneAreSharedByAll) {
  EXPECT_EQ(first_of_row({1, 4}), 0);
  EXPECT_EQ(first_of_row({1, 3, 4}), 4);
  EXPECT_EQ(first_of_row({3, 1, 4}), 8);
  EXPECT_EQ(first_of_row({1, 3, 3, 4}), 12 * 2 + 4);
  EXPECT_EQ(first_of_row({2, 1, 3, 4}), 12 + 4);
  EXPECT_EQ(first_of_row({2, 3, 1, 4}), 12 + 8);
  EXPECT_EQ(first_of_row({1, 1, 1, 4}), 0);
}

TEST(MaskRows, ColumnsThatLackHide) {
  const Tensor mask = counted({2, 3});
  const MaskRow row = MaskRows(mask).row(0, 0, 1);
  EXPECT_EQ(row.bias(2), 5);
  EXPECT_EQ(row.bias(3), -kInfinity);
  const Tensor boolean = tensor_of(ElementType::boolean, {2}, {1, 0});
  EXPECT_EQ(MaskRows(boolean).row(0, 0, 0).bias(0), 0);
  EXPECT_EQ(MaskRows(boolean).row(0, 0, 0).bias(1), -kInfinity);
}

TEST(MaskRows, TellWhetherHeadsShareARow) {
  EXPECT_TRUE(MaskRows(counted({3, 4})).same_for_heads());
  EXPECT_TRUE(MaskRows(counted({2, 1, 3, 4})).same_for_heads());
  EXPECT_FALSE(MaskRows(counted({3, 3, 4})).same_for_heads());
}

}  // namespace
}  // namespace kvcheck::kernels
