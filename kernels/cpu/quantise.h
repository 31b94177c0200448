// Codes of a quantised cache: how a row is stored, and what it reads back as.
//
// Symmetric, without zero point: code = round(x * r) with r = the f32 nearest to 1 / scale, ties to
// even, clamped to the range of the kind; attention reads code * scale, rounded to f32. A NaN gives
// the highest code; a scale of 0 stores x as it is, which reads back as 0 (contract of
// GroupQueryAttention, "Quantised cache").
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/cpu/planted/faults.h"
#include "kernels/target.h"

namespace kvcheck::kernels {

/// Keys or values of one session.
class Quantiser {
 public:
  /// \param scale one f32, or [Nk,lanes] per channel. \pre check_config(config) is empty
  Quantiser(const QuantisationConfig& config, const Tensor& scale, std::int64_t lanes,
            Fault fault = Fault::none);

  /// Writes the codes of a row of KV head `head`: a byte a lane, or for int4
  /// (even + 8) | (odd + 8) << 4, where an odd row ends in a nibble of code 0.
  void store(const float* row, std::int64_t head, std::byte* to) const;

  /// What attention reads.
  void load(const std::byte* from, std::int64_t head, float* row) const;

 private:
  enum class Kind { int8, int4, fp8 };

  float code(std::int64_t head, std::int64_t lane, float value) const;
  std::size_t scale_at(std::int64_t head, std::int64_t lane) const {
    return per_channel_ ? static_cast<std::size_t>(head * lanes_ + lane) : 0;
  }

  /// Two codes of int4 in a byte.
  std::byte pair_of(int even, int odd) const;

  Kind kind_;
  Fault fault_;
  bool per_channel_;
  std::int64_t lanes_;
  std::vector<float> scales_;
  std::vector<float> factors_;  // 1 / scale, or 1 where that is 0.
};

}  // namespace kvcheck::kernels
