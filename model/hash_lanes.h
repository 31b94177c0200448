// Rows of numbers that follow from a hash, lane by lane; see counter_hash.h.
#pragma once

#include <bit>
#include <cstdint>
#include <span>

#include "model/wide_loops.h"

namespace kvcheck::model {

/// `size` with the sign of a code, negative where the hash is odd.
KVCHECK_INTO_WIDE_LOOPS double signed_code(double size, std::uint64_t hash) {
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(size) ^ (hash << 63));
}

/// +-(1 + r/128) with r < 32: exact in every element type. The magnitude makes rows of few lanes
/// distinct, which signs alone would not.
KVCHECK_INTO_WIDE_LOOPS double code(std::uint64_t hash) {
  return signed_code(1.0 + static_cast<double>((hash >> 1) & 31) / 128.0, hash);
}

/// roughly_normal() of each lane.
void normal_lanes(std::uint64_t hash, std::span<double> row);

/// code() of each lane.
void code_lanes(std::uint64_t hash, std::span<double> row);

/// Adds signed_code() to each lane.
void add_signs(double size, std::uint64_t hash, std::span<double> row);

}  // namespace kvcheck::model
