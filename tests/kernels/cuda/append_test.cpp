// Rows of new tokens lie in the cache as they were given, or as the codes of the contract.
#include <cmath>

#include "kernels/cpu/quantise.h"
#include "tests/kernels/cuda/append_case.h"

namespace kvcheck::kernels::device {
namespace {

TEST(Append, StoresWhatPlainLoopsStoreUnderEveryOrder) {
  for (const AppendCase& one : append_cases()) {
    const std::vector<std::byte> expected = expected_append(one);
    for (const simt::Order order : kAllOrders) {
      const Outcome found = run_append(one, simt_kernels(), order);
      expect_none(found.defects);
      EXPECT_TRUE(found.bytes == expected)
          << "element " << static_cast<int>(one.element) << ", head size " << one.head_size
          << (one.int8 ? ", int8, " : ", ") << to_string(order);
    }
  }
}

TEST(Append, ManyRowsAreSharedByFewBlocks) {
  AppendCase one;
  one.kv_heads = 1;
  one.head_size = one.value_head_size = 1;
  one.element = Element::f16;
  one.tokens = {8'300};  // More warps than the grid has at once.
  one.rows = 8'300;
  const Outcome found = run_append(one, simt_kernels(), simt::Order::lockstep);
  expect_none(found.defects);
  EXPECT_TRUE(found.bytes == expected_append(one));
}

/// Codes of the kernel for one row, with a scale for every lane.
std::vector<std::int8_t> codes_of(const std::vector<float>& row, const std::vector<float>& scale) {
  World world(simt::Order::lockstep);
  std::vector<std::int8_t> codes(row.size());
  std::int8_t* const key = world.put(codes, simt::Use::read_write, "keys");
  std::int8_t* const value = world.put(codes, simt::Use::read_write, "values");
  AppendParameters p{};
  const auto lanes = static_cast<std::int64_t>(row.size());
  p.entries = world.put(std::vector<AppendEntry>{{key, value, lanes, lanes, 0, 1}},
                        simt::Use::input, "entries");
  p.key = p.value = world.put(row, simt::Use::input, "row");
  p.key_scale = p.value_scale = world.put(scale, simt::Use::input, "scales");
  p.tokens = p.batch = p.kv_heads = 1;
  p.head_size = p.value_head_size = static_cast<std::int32_t>(lanes);
  p.per_channel = true;
  simt_kernels().append(world.queue(), p);
  expect_none(world.queue().take_defects());
  return world.get(key, row.size());
}

TEST(Append, TiesGoToEvenAndTheEndsClamp) {
  const std::vector<float> row{0.5F, 1.5F, 2.5F, -2.5F, 126.5F, 127.6F, -200.0F, -128.5F, 0.0F};
  const std::vector<std::int8_t> expected{0, 2, 2, -2, 126, 127, -128, -128, 0};
  EXPECT_EQ(codes_of(row, std::vector<float>(row.size(), 1.0F)), expected);
}

TEST(Append, CodesAreThoseOfTheCpuBitForBit) {
  std::vector<float> row, scale;
  for (int i = 0; i < 20'000; ++i) {
    // Near the ties of x / scale, where the product with 1 / scale may fall to the other side.
    scale.push_back(std::ldexp(1.0F + static_cast<float>(i * 7919 % 8388608) / 8388608.0F, -5));
    const float tie = static_cast<float>(i % 260 - 130) + 0.5F;
    row.push_back(std::nextafter(tie * scale.back(), i % 3 == 0   ? 1e9F
                                                     : i % 3 == 1 ? -1e9F
                                                                  : tie * scale.back()));
  }
  Tensor scales = Tensor::zeros(ElementType::f32, {static_cast<std::int64_t>(scale.size())});
  std::memcpy(scales.bytes.data(), scale.data(), scales.bytes.size());
  QuantisationConfig config;
  config.kind = "int8";
  config.per_channel = true;
  const Quantiser quantiser(config, scales, static_cast<std::int64_t>(row.size()));
  std::vector<std::int8_t> expected(row.size());
  quantiser.store(row.data(), 0, reinterpret_cast<std::byte*>(expected.data()));
  EXPECT_EQ(codes_of(row, scale), expected);
}

}  // namespace
}  // namespace kvcheck::kernels::device
