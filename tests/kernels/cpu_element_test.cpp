// Elements as numbers and back: one rounding, clamps, rows.
#include <cstdint>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cpu/element.h"

namespace kvcheck::kernels {
namespace {

double through(ElementType type, double value) {
  std::byte bytes[8];
  encode_element(type, value, bytes);
  return decode_element(type, bytes);
}

TEST(Element, CodesClampAndTakeNanForTheHighest) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(through(ElementType::i8, 200), 127);
  EXPECT_EQ(through(ElementType::i8, -200), -128);
  EXPECT_EQ(through(ElementType::i8, nan), 127);
  EXPECT_EQ(through(ElementType::u8, -3), 0);
  EXPECT_EQ(through(ElementType::u8, nan), 255);
  EXPECT_EQ(through(ElementType::f8e4m3, 1000), 448);
}

// 1 + 2^-11 is half way between two f16; what is less than an f32 ulp above it decides.
TEST(Element, HalfTypesRoundADoubleOnce) {
  EXPECT_EQ(through(ElementType::f16, 1 + 0x1p-11), 1);
  EXPECT_EQ(through(ElementType::f16, 1 + 0x1p-11 + 0x1p-40), 1 + 0x1p-10);
  EXPECT_EQ(through(ElementType::f16, 1 + 0x1p-11 - 0x1p-40), 1);
  EXPECT_EQ(through(ElementType::f16, 1 + 3 * 0x1p-11 - 0x1p-40), 1 + 0x1p-10);
  EXPECT_EQ(through(ElementType::f16, -1 - 0x1p-11 - 0x1p-40), -1 - 0x1p-10);
  EXPECT_EQ(through(ElementType::bf16, 1 + 0x1p-8 + 0x1p-40), 1 + 0x1p-7);
  EXPECT_EQ(through(ElementType::f16, 65520 - 0x1p-30), 65504);
  EXPECT_EQ(through(ElementType::f16, 65520), std::numeric_limits<double>::infinity());
}

TEST(Element, RowsAreTheirElements) {
  const std::vector<float> numbers{1, -2.5, 0.125, 3};
  for (const ElementType type :
       {ElementType::f32, ElementType::f16, ElementType::bf16, ElementType::f64}) {
    std::vector<std::byte> bytes(numbers.size() * element_bytes(type));
    encode_row(type, numbers.data(), numbers.size(), bytes.data());
    std::vector<double> back(numbers.size());
    decode_row(type, bytes.data(), back.size(), back.data());
    EXPECT_EQ(back, std::vector<double>(numbers.begin(), numbers.end())) << to_string(type);
  }
}

}  // namespace
}  // namespace kvcheck::kernels
