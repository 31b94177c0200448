// What is declared of each kernel's arithmetic, by operator and element type.
#include "kernels/cuda/arithmetic.h"

#include <gtest/gtest.h>

namespace kvcheck::kernels::device {
namespace {

Capabilities declared(bool quantised) {
  Capabilities can;
  declare_arithmetic(can, quantised);
  return can;
}

TEST(DeviceArithmetic, OfF32IsThatOfCudaCores) {
  const Capabilities can = declared(false);
  for (const char* op : {"gqa", "attention"}) {
    const Arithmetic& f32 = can.arithmetic_of(op, "f32");
    EXPECT_EQ(f32.accumulator_roundoff, 0x1p-24) << op;
    EXPECT_EQ(f32.exp_error, 0x1p-22) << op;
    EXPECT_TRUE(f32.base_two && f32.exp_flushes) << op;
    EXPECT_FALSE(f32.truncates || f32.exact_products) << op;
    EXPECT_EQ(f32.probability_roundoff, 0) << op;
    EXPECT_EQ(f32.splits, 1) << op;
  }
}

TEST(DeviceArithmetic, Of16BitsIsThatOfTensorCores) {
  const Capabilities can = declared(false);
  for (const char* op : {"gqa", "attention"}) {
    for (const auto& [type, roundoff] : {std::pair{"f16", 0x1p-11}, {"bf16", 0x1p-8}}) {
      const Arithmetic& matrix = can.arithmetic_of(op, type);
      EXPECT_TRUE(matrix.truncates && matrix.exact_products) << op << type;
      EXPECT_EQ(matrix.probability_roundoff, roundoff) << op << type;
      EXPECT_EQ(matrix.rescale_block, 1) << op << type;
    }
  }
}

TEST(DeviceArithmetic, OfInt8CachesHasNoTensorCoresAndOneRoundingMore) {
  const Capabilities can = declared(true);
  for (const char* type : {"f32", "f16", "bf16"}) {
    const Arithmetic& cores = can.arithmetic_of("gqa", type);
    EXPECT_FALSE(cores.truncates || cores.exact_products) << type;
    EXPECT_EQ(cores.probability_roundoff, 0) << type;
    EXPECT_EQ(cores.dequantise_roundings, 1) << type;
  }
  EXPECT_EQ(declared(false).arithmetic_of("gqa", "f16").dequantise_roundings, 0);
}

}  // namespace
}  // namespace kvcheck::kernels::device
