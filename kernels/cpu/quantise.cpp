// Codes of a quantised cache.
#include "kernels/cpu/quantise.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "kernels/cpu/element.h"
#include "kernels/cpu/planted/input_mistakes.h"

namespace kvcheck::kernels {

using namespace std::string_view_literals;

Quantiser::Quantiser(const QuantisationConfig& config, const Tensor& scale, std::int64_t lanes,
                     Fault fault)
    : kind_(config.kind == "int8"sv   ? Kind::int8
            : config.kind == "int4"sv ? Kind::int4
                                      : Kind::fp8),
      fault_(fault),
      per_channel_(config.per_channel),
      lanes_(lanes),
      scales_(static_cast<std::size_t>(scale.elements())) {
  decode_row(ElementType::f32, scale.bytes.data(), scales_.size(), scales_.data());
  for (const float each : scales_) factors_.push_back(each == 0 ? 1.0F : 1.0F / each);
}

float Quantiser::code(std::int64_t head, std::int64_t lane, float value) const {
  const float lowest = kind_ == Kind::int8 ? -128 : kind_ == Kind::int4 ? -8 : -448;
  const float highest = kind_ == Kind::int8 ? 127 : kind_ == Kind::int4 ? 7 : 448;
  const float exact = value * factors_[scale_at(head, lane)];
  if (std::isnan(exact)) return highest;
  if (fault_ != Fault::none) return distort_code(fault_, exact, lowest, highest);
  // Both ends are codes, so clamping first gives what clamping last gives.
  const float clamped = std::clamp(exact, lowest, highest);
  return kind_ == Kind::fp8 ? clamped : std::nearbyint(clamped);
}

std::byte Quantiser::pair_of(int even, int odd) const {
  if (fault_ == Fault::nibbles_swapped) std::swap(even, odd);
  if (fault_ == Fault::nibbles_in_twos_complement) {
    return static_cast<std::byte>((even & 15) | (odd & 15) << 4);
  }
  return static_cast<std::byte>((even + 8) | (odd + 8) << 4);
}

void Quantiser::store(const float* row, std::int64_t head, std::byte* to) const {
  if (kind_ == Kind::int4) {
    for (std::int64_t lane = 0; lane < lanes_; lane += 2) {
      const auto even = static_cast<int>(code(head, lane, row[lane]));
      const int odd = lane + 1 < lanes_ ? static_cast<int>(code(head, lane + 1, row[lane + 1])) : 0;
      to[lane / 2] = pair_of(even, odd);
    }
    return;
  }
  const ElementType type = kind_ == Kind::int8 ? ElementType::i8 : ElementType::f8e4m3;
  for (std::int64_t lane = 0; lane < lanes_; ++lane) {
    encode_element(type, static_cast<double>(code(head, lane, row[lane])), to + lane);
  }
}

void Quantiser::load(const std::byte* from, std::int64_t head, float* row) const {
  for (std::int64_t lane = 0; lane < lanes_; ++lane) {
    float stored = 0;
    if (kind_ == Kind::int4) {
      const int pair = std::to_integer<int>(from[lane / 2]);
      stored = static_cast<float>((lane % 2 == 0 ? pair & 15 : pair >> 4) - 8);
    } else {
      const ElementType type = kind_ == Kind::int8 ? ElementType::i8 : ElementType::f8e4m3;
      stored = static_cast<float>(decode_element(type, from + lane));
    }
    row[lane] = stored * scales_[scale_at(head, lane)];
  }
}

}  // namespace kvcheck::kernels
