// Quantised cache rows: which code a key or value is stored as, and what it reads back as.
//
// Symmetric, without zero point, one f32 scale for the tensor or for each KV head and lane.
// Source: contract of GroupQueryAttention, "Quantised cache".
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "model/scenario.h"

namespace kvcheck::model {

/// How a value is divided by its scale, in f32: times the f32 nearest to 1 / scale, as ONNX Runtime
/// does, or by a division, as its documents say. They differ near ties only.
enum class QuantisationVariant { by_reciprocal, by_division };

/// Codes as numbers, in ascending order: integers for int8 and int4, e4m3fn values for fp8.
struct CodeRange {
  double lowest = 0;
  double highest = 0;
  bool contains(double code) const { return lowest <= code && code <= highest; }
  friend bool operator==(const CodeRange&, const CodeRange&) = default;
};

/// Every code that can be stored: [-128, 127], [-8, 7] or [-448, 448].
/// \pre kind is not none
CodeRange code_range(QuantisationKind kind);

/// The code that `value` is stored as: the f32 nearest to value, over the scale, rounded to the
/// nearest code, ties to even, and clamped to the range. The scale may be negative. A scale of 0
/// stores the value unscaled (CPU; the CUDA kernel stores 0, which reads back the same). A NaN,
/// also from 0 * infinity, gives the highest code, as measured for int8 and int4 in 1.32.0 and as
/// the CUDA code clamps fp8.
/// \pre kind is not none; scale is an f32
double quantise(QuantisationKind kind, float scale, double value,
                QuantisationVariant variant = QuantisationVariant::by_reciprocal);

/// The least and the greatest code that any value in [low, high] is stored as under either
/// variant, so that a value known up to an error is judged as either side of a tie. A NaN end
/// gives the whole range.
/// \pre kind is not none; low <= high or one is NaN
CodeRange quantise_interval(QuantisationKind kind, float scale, double low, double high);

/// code * scale rounded to f32, which is what attention reads.
double dequantise(double code, float scale);

/// The e4m3fn value nearest to `value`, ties to even, clamped to +-448; NaN stays. No infinities.
double round_to_fp8(double value);

/// The byte of round_to_fp8(value): sign, four bits of exponent with bias 7, three of fraction.
/// NaN gives 0x7f, -0 gives 0x80.
std::uint8_t encode_fp8(double value);

/// The value of the byte; 0x7f and 0xff are NaN.
double decode_fp8(std::uint8_t byte);

/// Bytes of one row of `head_size` lanes: ceil(head_size / 2) for int4, else head_size.
/// \pre kind is not none, head_size >= 0
std::int64_t row_bytes(QuantisationKind kind, std::int64_t head_size);

/// Scales of one cache: 1, or kv_heads * head_size with those of a KV head side by side.
/// \pre both counts are at least 0 and their product fits
std::int64_t scale_count(const Quantisation& quantisation, std::int64_t kv_heads,
                         std::int64_t head_size);

/// Stores the codes of one row. int8 in two's complement, fp8 as encode_fp8; int4 as
/// (even + 8) | (odd + 8) << 4, where an odd row ends in a nibble of code 0, so that a row of
/// zeros is 0x88 throughout.
/// \pre every code is in code_range(kind); bytes holds row_bytes(kind, codes.size())
void store_row(QuantisationKind kind, std::span<const double> codes, std::span<std::byte> bytes);

/// The codes of one row; the padding nibble of an odd int4 row is not read.
/// \pre as for store_row
void load_row(QuantisationKind kind, std::span<const std::byte> bytes, std::span<double> codes);

}  // namespace kvcheck::model
