// Codes of a quantised cache by hand: the examples of the contract, ties, packing, odd scales.
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cpu/quantise.h"
#include "tests/kernels/cpu_sequence.h"

namespace kvcheck::kernels {
namespace {

Quantiser per_tensor(const char* kind, double scale, std::int64_t lanes) {
  QuantisationConfig config;
  config.kind = kind;
  return {config, tensor_of(ElementType::f32, {1}, {scale}), lanes};
}

std::vector<int> bytes_of_row(const Quantiser& codes, const std::vector<float>& row,
                              std::size_t bytes, std::int64_t head = 0) {
  std::vector<std::byte> stored(bytes);
  codes.store(row.data(), head, stored.data());
  std::vector<int> numbers;
  for (const std::byte byte : stored) numbers.push_back(std::to_integer<int>(byte));
  return numbers;
}

/// What a single lane reads back as.
float through(const Quantiser& codes, float value) {
  std::byte stored{};
  codes.store(&value, 0, &stored);
  float back = 0;
  codes.load(&stored, 0, &back);
  return back;
}

TEST(Quantise, EightBitsFollowTheExamplesOfTheContract) {
  const Quantiser codes = per_tensor("int8", 1, 1);
  const std::pair<float, float> examples[] = {
      {0.5F, 0}, {1.5F, 2}, {2.5F, 2}, {-2.5F, -2}, {126.5F, 126}, {127.6F, 127}, {-200.0F, -128}};
  for (const auto& [value, code] : examples) EXPECT_EQ(through(codes, value), code) << value;
  EXPECT_EQ(through(codes, std::nanf("")), 127);
}

TEST(Quantise, MultipliesWithTheReciprocalOfTheScale) {
  // 1/s rounds to a number that is larger; x/s is the tie itself and would go to the even code.
  const auto scale = 0x1.36d138p-1;
  EXPECT_EQ(through(per_tensor("int8", scale, 1), 0x1.5dab6p+1F), static_cast<float>(5 * scale));
}

TEST(Quantise, NegativeScalesWorkAndAScaleOfZeroStoresTheValue) {
  EXPECT_EQ(bytes_of_row(per_tensor("int8", -0.5, 1), {1}, 1), (std::vector<int>{254}));
  EXPECT_EQ(through(per_tensor("int8", -0.5, 1), 1), 1);
  EXPECT_EQ(bytes_of_row(per_tensor("int8", 0, 1), {3.7F}, 1), (std::vector<int>{4}));
  EXPECT_EQ(through(per_tensor("int8", 0, 1), 3.7F), 0);
}

TEST(Quantise, FourBitsSitInPairsTheEvenLaneLow) {
  const Quantiser codes = per_tensor("int4", 1, 3);
  EXPECT_EQ(bytes_of_row(codes, {0, 0, 0}, 2), (std::vector<int>{0x88, 0x88}));
  EXPECT_EQ(bytes_of_row(codes, {1, -8, 7}, 2), (std::vector<int>{0x09, 0x8f}));
  EXPECT_EQ(bytes_of_row(codes, {100, -100, 2.5F}, 2), (std::vector<int>{0x0f, 0x8a}));
  const std::byte stored[] = {std::byte{0x09}, std::byte{0x0f}};
  float row[3];
  per_tensor("int4", 0.5, 3).load(stored, 0, row);
  EXPECT_EQ((Numbers{row[0], row[1], row[2]}), (Numbers{0.5, -4, 3.5}));
}

TEST(Quantise, ScalesOfAChannelAreThoseOfItsHead) {
  QuantisationConfig config;
  config.kind = "int8";
  config.per_channel = true;
  const Quantiser codes(config, tensor_of(ElementType::f32, {2, 2}, {1, 2, 4, 8}), 2);
  EXPECT_EQ(bytes_of_row(codes, {16, 16}, 2, 0), (std::vector<int>{16, 8}));
  EXPECT_EQ(bytes_of_row(codes, {16, 16}, 2, 1), (std::vector<int>{4, 2}));
  const std::byte stored[] = {std::byte{1}, std::byte{3}};
  float row[2];
  codes.load(stored, 1, row);
  EXPECT_EQ((Numbers{row[0], row[1]}), (Numbers{4, 24}));
}

TEST(Quantise, EightBitFloatsRoundAndClamp) {
  const Quantiser codes = per_tensor("fp8", 1, 1);
  EXPECT_EQ(through(codes, 1.0625F), 1);      // Half way between 1 and 1.125.
  EXPECT_EQ(through(codes, 1.1875F), 1.25F);  // Half way between 1.125 and 1.25.
  EXPECT_EQ(through(codes, -1000), -448);
  EXPECT_EQ(through(codes, std::nanf("")), 448);
}

}  // namespace
}  // namespace kvcheck::kernels
