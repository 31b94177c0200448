// Facts about rounding and storage of element types.
#include "model/element_type.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace kvcheck::model {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double from_bits16(ElementType type, unsigned bits) {
  const std::array bytes{static_cast<std::byte>(bits & 0xff), static_cast<std::byte>(bits >> 8)};
  return load_element(type, bytes.data());
}

unsigned to_bits16(ElementType type, double value) {
  std::array<std::byte, 2> bytes{};
  store_element(type, value, bytes.data());
  return std::to_integer<unsigned>(bytes[0]) | (std::to_integer<unsigned>(bytes[1]) << 8);
}

class HalfTypes : public testing::TestWithParam<ElementType> {
 protected:
  /// Pattern of +infinity: every pattern below is a finite value, in ascending order.
  unsigned infinity() const { return GetParam() == ElementType::f16 ? 0x7c00 : 0x7f80; }
};

INSTANTIATE_TEST_SUITE_P(ElementType, HalfTypes,
                         testing::Values(ElementType::f16, ElementType::bf16),
                         [](const auto& tested) { return std::string(to_string(tested.param)); });

TEST_P(HalfTypes, EveryPatternReadsBackAsItself) {
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    const double value = from_bits16(GetParam(), bits);
    ASSERT_EQ(to_bits16(GetParam(), value), bits) << value;
    ASSERT_EQ(std::isnan(value), (bits & 0x7fff) > infinity());
    if (!std::isnan(value)) {
      ASSERT_EQ(round_to(GetParam(), value), value);
    }
  }
}

TEST_P(HalfTypes, MidpointsTieToTheEvenPattern) {
  for (unsigned bits = 0; bits + 1 < infinity(); ++bits) {
    const double below = from_bits16(GetParam(), bits);
    const double above = from_bits16(GetParam(), bits + 1);
    ASSERT_LT(below, above);
    const double middle = below + (above - below) / 2;
    const double even = bits % 2 == 0 ? below : above;
    ASSERT_EQ(round_to(GetParam(), middle), even) << bits;
    ASSERT_EQ(round_to(GetParam(), -middle), -even) << bits;
    ASSERT_EQ(round_to(GetParam(), std::nextafter(middle, kInfinity)), above) << bits;
    ASSERT_EQ(round_to(GetParam(), std::nextafter(middle, -kInfinity)), below) << bits;
  }
}

TEST_P(HalfTypes, OverflowBeginsHalfASpacingAboveTheLargestValue) {
  const double largest = from_bits16(GetParam(), infinity() - 1);
  const double spacing = largest - from_bits16(GetParam(), infinity() - 2);
  EXPECT_EQ(largest_finite(GetParam()), largest);
  EXPECT_EQ(round_to(GetParam(), largest + spacing / 2), kInfinity);
  EXPECT_EQ(round_to(GetParam(), std::nextafter(largest + spacing / 2, 0.0)), largest);
  EXPECT_EQ(round_to(GetParam(), -1e300), -kInfinity);
}

TEST_P(HalfTypes, UnitRoundoffAndSubnormalHalfSpacingAreHalvesOfRealSpacings) {
  const double one = 1.0;
  EXPECT_EQ(from_bits16(GetParam(), to_bits16(GetParam(), one) + 1) - one,
            2 * unit_roundoff(GetParam()));
  EXPECT_EQ(from_bits16(GetParam(), 1), 2 * subnormal_half_spacing(GetParam()));
}

TEST(ElementType, LiteralValuesHaveTheirKnownPatterns) {
  EXPECT_EQ(to_bits16(ElementType::f16, 1.0), 0x3c00u);
  EXPECT_EQ(to_bits16(ElementType::f16, -2.0), 0xc000u);
  EXPECT_EQ(to_bits16(ElementType::f16, 65504.0), 0x7bffu);
  EXPECT_EQ(to_bits16(ElementType::f16, std::ldexp(1.0, -24)), 0x0001u);
  EXPECT_EQ(to_bits16(ElementType::bf16, 1.0), 0x3f80u);
  EXPECT_EQ(to_bits16(ElementType::bf16, 3.140625), 0x4049u);
  EXPECT_EQ(to_bits16(ElementType::f16, -0.0), 0x8000u);
}

TEST(ElementType, F32AgreesWithTheProcessorOnEveryKindOfDouble) {
  std::mt19937_64 bits(7);
  const auto agrees = [](double value) {
    // The store rounds by our own arithmetic, round_to by the processor's.
    std::array<std::byte, 4> bytes{};
    store_element(ElementType::f32, value, bytes.data());
    const std::uint64_t stored =
        std::bit_cast<std::uint64_t>(load_element(ElementType::f32, bytes.data()));
    const auto expected = static_cast<double>(static_cast<float>(value));
    return stored == std::bit_cast<std::uint64_t>(expected) &&
           stored == std::bit_cast<std::uint64_t>(round_to(ElementType::f32, value));
  };
  for (int i = 0; i < 200000; ++i) {
    // Exponents around the whole range of f32, subnormal numbers and overflow included.
    const auto exponent = 1023 - 160 + bits() % 320;
    const double value = std::bit_cast<double>((bits() & 0x800fffffffffffffULL) | exponent << 52);
    ASSERT_TRUE(agrees(value)) << value;
    const double middle = (static_cast<double>(static_cast<float>(value)) +
                           static_cast<double>(std::nextafterf(static_cast<float>(value), 2.f))) /
                          2;
    ASSERT_TRUE(agrees(middle)) << middle;
  }
  for (const double value : {0.0, -0.0, 5e-324, -1e-310, 1e300, kInfinity, -kInfinity}) {
    EXPECT_TRUE(agrees(value)) << value;
  }
}

TEST(ElementType, F64KeepsEveryValue) {
  for (const double value : {0.1, -5e-324, 1.7976931348623157e308, -kInfinity}) {
    EXPECT_EQ(round_to(ElementType::f64, value), value);
    std::array<std::byte, 8> bytes{};
    store_element(ElementType::f64, value, bytes.data());
    EXPECT_EQ(load_element(ElementType::f64, bytes.data()), value);
  }
  EXPECT_EQ(unit_roundoff(ElementType::f64), 0x1p-53);
  EXPECT_GT(subnormal_half_spacing(ElementType::f64), 0);
}

TEST(ElementType, OneRoundingFromDoubleNotTwo) {
  // Just above a tie of f16; through f32 it would become the tie and go down to even.
  const double value = 1.0 + 0x1p-11 + 0x1p-40;
  EXPECT_EQ(round_to(ElementType::f16, value), 1.0 + 0x1p-10);
  EXPECT_EQ(round_to(ElementType::f16, static_cast<float>(value)), 1.0);
}

TEST(ElementType, NanStaysNanWithItsSign) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double faint = std::bit_cast<double>(0xfff0000000000001ULL);  // Payload in the last bit.
  for (const auto type :
       {ElementType::f32, ElementType::f16, ElementType::bf16, ElementType::f64}) {
    for (const double value : {nan, -nan, faint}) {
      EXPECT_TRUE(std::isnan(round_to(type, value)));
      std::array<std::byte, 8> bytes{};
      store_element(type, value, bytes.data());
      EXPECT_TRUE(std::isnan(load_element(type, bytes.data())));
      EXPECT_EQ(std::signbit(load_element(type, bytes.data())), std::signbit(value));
    }
  }
}

TEST(ElementType, StoresLittleEndian) {
  std::array<std::byte, 4> bytes{};
  store_element(ElementType::f32, 1.0, bytes.data());
  EXPECT_EQ(bytes[3], std::byte{0x3f});
  EXPECT_EQ(bytes[2], std::byte{0x80});
  EXPECT_EQ(bytes[0], std::byte{0});
}

TEST(ElementType, NamesReadBack) {
  for (const auto type :
       {ElementType::f32, ElementType::f16, ElementType::bf16, ElementType::f64}) {
    EXPECT_EQ(element_type_from(to_string(type)), type);
  }
  EXPECT_EQ(element_type_from("f8"), std::nullopt);
  EXPECT_EQ(element_bytes(ElementType::bf16), 2u);
  EXPECT_EQ(element_bytes(ElementType::f64), 8u);
}

TEST(ElementTypes, RowsAreRoundedStoredAndLoadedLikeTheirElements) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> given{0.0,     -0.0,     1.0 / 3,   -1e-41, 6e-8, 65519.9, 65520.0,
                                  3.39e38, -3.41e38, kInfinity, nan,    0.1,  5e-324,  2.5};
  for (const ElementType type :
       {ElementType::f32, ElementType::f16, ElementType::bf16, ElementType::f64}) {
    const std::size_t width = element_bytes(type);
    std::vector<std::byte> row(given.size() * width), single(width);
    store_elements(type, given, row.data());
    std::vector<double> rounded = given;
    round_row(type, rounded);
    std::vector<double> loaded(given.size());
    load_elements(type, row.data(), loaded);
    for (std::size_t i = 0; i < given.size(); ++i) {
      const double one = load_element(type, row.data() + i * width);
      EXPECT_EQ(std::bit_cast<std::uint64_t>(loaded[i]), std::bit_cast<std::uint64_t>(one));
      store_element(type, given[i], single.data());
      EXPECT_EQ(std::memcmp(row.data() + i * width, single.data(), width), 0) << given[i];
      const double alone = round_to(type, given[i]);
      EXPECT_EQ(std::bit_cast<std::uint64_t>(rounded[i]), std::bit_cast<std::uint64_t>(alone));
    }
  }
}

/// Rows of numbers that are zero or normal in the type, as most are, are converted side by side:
/// of every length, and with one other number at any place.
TEST(ElementTypes, RowsOfEveryLengthAreLikeTheirElements) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> common{0.0, -0.0, 1.0 / 3, -2.5, 6.2e-5, -65504, 0.1, 1.00390625};
  const std::vector<double> others{1.0, 3e-8, -1e-41, 65519.9, 65520, 3.39e38, -kInfinity, nan};
  for (const ElementType type : {ElementType::f32, ElementType::f16, ElementType::bf16}) {
    const std::size_t width = element_bytes(type);
    for (std::size_t length = 1; length <= 67; ++length) {
      for (std::size_t odd = 0; odd < others.size(); ++odd) {
        std::vector<double> row(length);
        for (std::size_t i = 0; i < length; ++i) row[i] = common[(3 * i + length) % common.size()];
        row[odd * length / others.size()] = others[odd];
        std::vector<std::byte> stored(length * width), single(width);
        store_elements(type, row, stored.data());
        std::vector<double> loaded(length), rounded = row;
        load_elements(type, stored.data(), loaded);
        round_row(type, rounded);
        for (std::size_t i = 0; i < length; ++i) {
          store_element(type, row[i], single.data());
          ASSERT_EQ(std::memcmp(stored.data() + i * width, single.data(), width), 0) << row[i];
          const double one = load_element(type, single.data()), alone = round_to(type, row[i]);
          ASSERT_EQ(std::bit_cast<std::uint64_t>(loaded[i]), std::bit_cast<std::uint64_t>(one));
          ASSERT_EQ(std::bit_cast<std::uint64_t>(rounded[i]), std::bit_cast<std::uint64_t>(alone));
        }
      }
    }
  }
}

/// Every pattern of 16 bits, in rows of 16.
TEST_P(HalfTypes, RowsLoadEveryPatternLikeItself) {
  std::vector<std::uint16_t> patterns(16);
  std::vector<double> loaded(patterns.size());
  const auto* bytes = reinterpret_cast<const std::byte*>(patterns.data());
  for (std::uint32_t first = 0; first <= 0xffff; first += 16) {
    for (std::size_t i = 0; i < patterns.size(); ++i) {
      patterns[i] = static_cast<std::uint16_t>(first + i);
    }
    load_elements(GetParam(), bytes, loaded);
    for (std::size_t i = 0; i < patterns.size(); ++i) {
      const double one = load_element(GetParam(), bytes + 2 * i);
      ASSERT_EQ(std::bit_cast<std::uint64_t>(loaded[i]), std::bit_cast<std::uint64_t>(one))
          << std::hex << patterns[i];
    }
  }
}

/// At every border between zeros, subnormal and normal numbers, infinity and NaN, whose payloads
/// stay.
TEST(ElementTypes, RowsOfF32LoadEveryKindOfPattern) {
  const std::vector<std::uint32_t> patterns{
      0x00000000, 0x80000000, 0x00000001, 0x807fffff, 0x00800000, 0x80800000, 0x3f800000,
      0x7f7fffff, 0x7f800000, 0xff800000, 0x7f800001, 0xff800001, 0x7fc00000, 0xffffffff};
  std::vector<double> loaded(patterns.size());
  const auto* bytes = reinterpret_cast<const std::byte*>(patterns.data());
  load_elements(ElementType::f32, bytes, loaded);
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    const double one = load_element(ElementType::f32, bytes + 4 * i);
    EXPECT_EQ(std::bit_cast<std::uint64_t>(loaded[i]), std::bit_cast<std::uint64_t>(one))
        << std::hex << patterns[i];
  }
}

}  // namespace
}  // namespace kvcheck::model
