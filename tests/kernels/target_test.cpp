// Element types and tensors of the target interface.
#include "kernels/target.h"

#include <stdexcept>

#include <gtest/gtest.h>

namespace kvcheck::kernels {
namespace {

TEST(ElementTypes, HaveTheirSizesAndNamesBothWays) {
  struct Known {
    ElementType type;
    const char* name;
    std::size_t bytes;
  };
  for (const Known& known :
       {Known{ElementType::f32, "f32", 4}, Known{ElementType::f16, "f16", 2},
        Known{ElementType::bf16, "bf16", 2}, Known{ElementType::f64, "f64", 8},
        Known{ElementType::boolean, "boolean", 1}, Known{ElementType::i8, "i8", 1},
        Known{ElementType::u8, "u8", 1}, Known{ElementType::f8e4m3, "f8e4m3", 1},
        Known{ElementType::i64, "i64", 8}}) {
    EXPECT_EQ(to_string(known.type), known.name);
    EXPECT_EQ(element_type_from(known.name), known.type);
    EXPECT_EQ(element_bytes(known.type), known.bytes);
  }
  EXPECT_EQ(element_type_from("f8"), std::nullopt);
  EXPECT_EQ(element_type_from(""), std::nullopt);
}

TEST(Tensors, CountTheirElements) {
  EXPECT_EQ((Tensor{ElementType::f32, {2, 3, 4}, {}}.elements()), 24);
  EXPECT_EQ((Tensor{ElementType::f32, {}, {}}.elements()), 1);
  EXPECT_EQ((Tensor{ElementType::f32, {1LL << 40, 0, 1LL << 40}, {}}.elements()), 0);
}

TEST(Tensors, RefuseExtentsThatMakeNoCount) {
  EXPECT_THROW((Tensor{ElementType::f32, {2, -1}, {}}.elements()), std::length_error);
  EXPECT_THROW((Tensor{ElementType::f32, {0, -1}, {}}.elements()), std::length_error);
  EXPECT_THROW((Tensor{ElementType::f32, {1LL << 32, 1LL << 32}, {}}.elements()),
               std::length_error);
}

TEST(Tensors, StartAtZeroAndStopAtTwoGibibytes) {
  const Tensor tensor = Tensor::zeros(ElementType::f16, {3, 5});
  EXPECT_EQ(tensor.bytes, std::vector<std::byte>(30));
  EXPECT_EQ(tensor.shape, (std::vector<std::int64_t>{3, 5}));
  EXPECT_THROW(Tensor::zeros(ElementType::f64, {(1LL << 28) + 1}), std::length_error);
}

}  // namespace
}  // namespace kvcheck::kernels
