// Facts about the codes of a quantised cache, checked against measured ones and by exhaustion.
#include "model/quantisation.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace kvcheck::model {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr auto kInt8 = QuantisationKind::int8;
constexpr auto kInt4 = QuantisationKind::int4;
constexpr auto kFp8 = QuantisationKind::fp8;

TEST(Quantisation, Int8CodesAreTheMeasuredOnes) {
  struct Measured {
    double value;
    double code;
  };
  for (const Measured m : {Measured{0.5, 0},
                           {1.5, 2},
                           {2.5, 2},
                           {-2.5, -2},
                           {126.5, 126},
                           {127.6, 127},
                           {-200, -128},
                           {127.4, 127},
                           {-128.5, -128}}) {
    EXPECT_EQ(quantise(kInt8, 1, m.value), m.code) << m.value;
    EXPECT_EQ(quantise(kInt8, -1, -m.value), m.code) << m.value;
    EXPECT_EQ(quantise(kInt8, 1, m.value, QuantisationVariant::by_division), m.code) << m.value;
  }
}

TEST(Quantisation, NanAndInfinitiesAreStoredAsMeasured) {
  // The row nan, inf, -inf, 1e30, -1e30, 0, 1.5, -2.5 in ONNX Runtime 1.32.0 by scale and width.
  constexpr std::array kValues{kNan, kInfinity, -kInfinity, 1e30, -1e30, 0.0, 1.5, -2.5};
  struct Measured {
    float scale;
    QuantisationKind kind;
    std::array<double, 8> codes;
  };
  for (const Measured& m :
       {Measured{1.F, kInt8, {127, 127, -128, 127, -128, 0, 2, -2}},
        {0.F, kInt8, {127, 127, -128, 127, -128, 0, 2, -2}},
        {-1.F, kInt8, {127, -128, 127, -128, 127, 0, -2, 2}},
        {1e-40F, kInt8, {127, 127, -128, 127, -128, 127, 127, -128}},
        {std::numeric_limits<float>::infinity(), kInt8, {127, 127, 127, 0, 0, 0, 0, 0}},
        {std::numeric_limits<float>::quiet_NaN(), kInt8, {127, 127, 127, 127, 127, 127, 127, 127}},
        {1.F, kInt4, {7, 7, -8, 7, -8, 0, 2, -2}},
        {-1.F, kInt4, {7, -8, 7, -8, 7, 0, -2, 2}},
        {1e-40F, kInt4, {7, 7, -8, 7, -8, 7, 7, -8}}}) {
    for (std::size_t i = 0; i < kValues.size(); ++i) {
      EXPECT_EQ(quantise(m.kind, m.scale, kValues[i]), m.codes[i]) << m.scale << ", " << kValues[i];
    }
  }
}

TEST(Quantisation, EveryTieGoesToTheEvenCode) {
  for (const auto kind : {kInt8, kInt4}) {
    const CodeRange range = code_range(kind);
    for (double code = range.lowest; code < range.highest; ++code) {
      const double even = std::fmod(code, 2) == 0 ? code : code + 1;
      EXPECT_EQ(quantise(kind, 0.25F, (code + 0.5) / 4), even);
      EXPECT_EQ(quantise(kind, 1, std::nextafterf(static_cast<float>(code + 0.5), -1000)), code);
      EXPECT_EQ(quantise(kind, 1, std::nextafterf(static_cast<float>(code + 0.5), 1000)), code + 1);
    }
  }
}

TEST(Quantisation, CodesAreThoseOfThePlainFloatFormula) {
  std::mt19937_64 bits(11);
  int variants_differ = 0;
  for (int i = 0; i < 200000; ++i) {
    const auto scale = std::bit_cast<float>(static_cast<std::uint32_t>(bits()));
    const float value = std::isfinite(scale)
                            ? scale * static_cast<float>(static_cast<int>(bits() % 600) - 300) / 2
                            : 1.F;
    if (!std::isfinite(value) || scale == 0) continue;
    const float reciprocal = 1 / scale;
    const auto code_of = [](float quotient) {
      return std::isnan(quotient) ? 127.
                                  : std::fmin(std::fmax(std::nearbyint(quotient), -128), 127);
    };
    const double multiplied = quantise(kInt8, scale, value);
    const double divided = quantise(kInt8, scale, value, QuantisationVariant::by_division);
    ASSERT_EQ(multiplied, code_of(value * reciprocal)) << value << " / " << scale;
    ASSERT_EQ(divided, code_of(value / scale)) << value << " / " << scale;
    variants_differ += multiplied != divided ? 1 : 0;
  }
  // The values are ties by construction, so the two ways part often.
  EXPECT_GT(variants_differ, 1000);
}

TEST(Quantisation, AnIntervalHoldsTheCodesOfBothVariantsAndOfEveryValueInIt) {
  std::mt19937_64 bits(12);
  const std::array scales{
      0.1F, -0.3F, 1.F / 3, 0.F, 1e-40F, -1e-40F, std::numeric_limits<float>::infinity()};
  const std::array ends{-kInfinity, -50., -0.35, -1e-60, 0., 1e-60, 0.05, 0.25, 40., kInfinity};
  for (const auto kind : {kInt8, kInt4, kFp8}) {
    for (const float scale : scales) {
      for (std::size_t i = 0; i < ends.size(); ++i) {
        for (std::size_t j = i; j < ends.size(); ++j) {
          const CodeRange range = quantise_interval(kind, scale, ends[i], ends[j]);
          for (std::size_t within = i; within <= j; ++within) {
            for (const auto variant :
                 {QuantisationVariant::by_reciprocal, QuantisationVariant::by_division}) {
              EXPECT_TRUE(range.contains(quantise(kind, scale, ends[within], variant)))
                  << scale << ": " << ends[within];
            }
          }
        }
      }
    }
  }
}

TEST(Quantisation, AnIntervalIsAsNarrowAsItsCodes) {
  EXPECT_EQ(quantise_interval(kInt8, 1, 2.4, 2.4), (CodeRange{2, 2}));
  EXPECT_EQ(quantise_interval(kInt8, 1, 2.4, 2.6), (CodeRange{2, 3}));
  EXPECT_EQ(quantise_interval(kInt8, -1, 2.4, 2.6), (CodeRange{-3, -2}));
  EXPECT_EQ(quantise_interval(kInt8, 0.1F, -0.35, 100), (CodeRange{-4, 127}));
  EXPECT_EQ(quantise_interval(kInt8, 0.1F, kNan, 0), code_range(kInt8));
  EXPECT_EQ(quantise_interval(kFp8, 2, 1, 1), (CodeRange{0.5, 0.5}));
  // 2.25 over 0.3F is just under 7.5, and times its reciprocal just above.
  EXPECT_EQ(quantise(kInt8, 0.3F, 2.25), 8);
  EXPECT_EQ(quantise(kInt8, 0.3F, 2.25, QuantisationVariant::by_division), 7);
  EXPECT_EQ(quantise_interval(kInt8, 0.3F, 2.25, 2.25), (CodeRange{7, 8}));
}

TEST(Quantisation, ReadsBackAsTheProductInF32) {
  EXPECT_EQ(dequantise(127, 0.1F), static_cast<double>(127 * 0.1F));
  EXPECT_NE(dequantise(127, 0.1F), 127 * static_cast<double>(0.1F));
  EXPECT_EQ(dequantise(-8, -0.5F), 4);
  EXPECT_EQ(dequantise(quantise(kInt8, 0, 55), 0), 0);
  for (double code = -128; code <= 127; ++code) {
    EXPECT_EQ(quantise(kInt8, 0.1F, dequantise(code, 0.1F)), code);
  }
}

TEST(Fp8, EveryByteReadsBackAsItself) {
  for (unsigned byte = 0; byte < 256; ++byte) {
    const auto code = static_cast<std::uint8_t>(byte);
    const double value = decode_fp8(code);
    if ((byte & 0x7f) == 0x7f) {
      EXPECT_TRUE(std::isnan(value));
      EXPECT_EQ(encode_fp8(value), 0x7f);
      continue;
    }
    EXPECT_EQ(encode_fp8(value), byte);
    EXPECT_EQ(round_to_fp8(value), value);
    EXPECT_EQ(quantise(kFp8, 1, value), value);
    EXPECT_EQ(std::signbit(value), byte >= 0x80);
  }
}

TEST(Fp8, ValuesAreTheKnownOnesAndAscend) {
  EXPECT_EQ(decode_fp8(0x01), 0x1p-9);
  EXPECT_EQ(decode_fp8(0x07), 7 * 0x1p-9);
  EXPECT_EQ(decode_fp8(0x08), 0x1p-6);
  EXPECT_EQ(decode_fp8(0x38), 1);
  EXPECT_EQ(decode_fp8(0x7e), 448);
  EXPECT_EQ(decode_fp8(0xfe), -448);
  EXPECT_EQ(encode_fp8(-0.0), 0x80);
  for (std::uint8_t byte = 0; byte < 0x7e; ++byte) {
    EXPECT_LT(decode_fp8(byte), decode_fp8(static_cast<std::uint8_t>(byte + 1)));
  }
}

TEST(Fp8, MidpointsTieToTheEvenByte) {
  for (std::uint8_t byte = 0; byte < 0x7e; ++byte) {
    const double below = decode_fp8(byte);
    const double above = decode_fp8(static_cast<std::uint8_t>(byte + 1));
    const double middle = (below + above) / 2;
    const double even = byte % 2 == 0 ? below : above;
    EXPECT_EQ(round_to_fp8(middle), even);
    EXPECT_EQ(round_to_fp8(-middle), -even);
    EXPECT_EQ(round_to_fp8(std::nextafter(middle, kInfinity)), above);
    EXPECT_EQ(round_to_fp8(std::nextafter(middle, -kInfinity)), below);
  }
}

TEST(Fp8, OverflowIsClamped) {
  for (const double value : {448.1, 464., 1e30, kInfinity}) {
    EXPECT_EQ(round_to_fp8(value), 448);
    EXPECT_EQ(quantise(kFp8, 1, -value), -448);
  }
  EXPECT_EQ(quantise(kFp8, 1, kNan), 448);
  EXPECT_TRUE(std::isnan(round_to_fp8(kNan)));
}

std::vector<std::byte> stored(QuantisationKind kind, const std::vector<double>& codes) {
  std::vector<std::byte> bytes(
      static_cast<std::size_t>(row_bytes(kind, static_cast<std::int64_t>(codes.size()))));
  store_row(kind, codes, bytes);
  return bytes;
}

TEST(QuantisedRow, EveryPairOfInt4CodesHasItsByte) {
  for (int byte = 0; byte < 256; ++byte) {
    const std::vector<std::byte> bytes{static_cast<std::byte>(byte)};
    std::vector<double> codes(2);
    load_row(kInt4, bytes, codes);
    EXPECT_EQ(codes[0], byte % 16 - 8);
    EXPECT_EQ(codes[1], byte / 16 - 8);
    EXPECT_EQ(stored(kInt4, codes), bytes);
  }
}

TEST(QuantisedRow, Int4RowsAreTheMeasuredOnes) {
  // nan, inf, -inf, 1e30, -1e30, 0.5, 1.5, -2.5 with scale 1 in ONNX Runtime 1.32.0.
  EXPECT_EQ(stored(kInt4, {7, 7, -8, 7, -8, 0, 2, -2}),
            (std::vector{std::byte{255}, std::byte{240}, std::byte{128}, std::byte{106}}));
  EXPECT_EQ(stored(kInt4, {0, 0}), std::vector{std::byte{0x88}});
}

TEST(QuantisedRow, AnOddInt4RowEndsInACodeOfZero) {
  EXPECT_EQ(stored(kInt4, {-8, 7, 3}), (std::vector{std::byte{0xf0}, std::byte{0x8b}}));
  std::vector<double> codes(3);
  load_row(kInt4, std::vector{std::byte{0xf0}, std::byte{0x3b}}, codes);
  EXPECT_EQ(codes, (std::vector<double>{-8, 7, 3}));
}

TEST(QuantisedRow, EveryInt8AndFp8ByteReadsBackAsItself) {
  for (const auto kind : {kInt8, kFp8}) {
    for (int byte = 0; byte < 256; ++byte) {
      const std::vector<std::byte> bytes{static_cast<std::byte>(byte)};
      std::vector<double> codes(1);
      load_row(kind, bytes, codes);
      if (kind == kInt8) {
        EXPECT_EQ(codes[0], byte < 128 ? byte : byte - 256);
      }
      if (kind == kInt8 || !std::isnan(codes[0])) {
        EXPECT_EQ(stored(kind, codes), bytes);
      }
    }
  }
}

TEST(QuantisedRow, SizesAndCountsOfScales) {
  EXPECT_EQ(row_bytes(kInt8, 7), 7);
  EXPECT_EQ(row_bytes(kFp8, 7), 7);
  EXPECT_EQ(row_bytes(kInt4, 7), 4);
  EXPECT_EQ(row_bytes(kInt4, std::numeric_limits<std::int64_t>::max()), 1LL << 62);
  EXPECT_EQ(scale_count({kInt8, false}, 3, 8), 1);
  EXPECT_EQ(scale_count({kInt8, true}, 3, 8), 24);
}

}  // namespace
}  // namespace kvcheck::model
